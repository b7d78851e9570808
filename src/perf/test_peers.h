// Engines that are small Python programs, for tests of those who talk to engines.
#pragma once

#include <algorithm>
#include <string>

#include "perf/peer.h"

namespace ferry::perf {

// A program that calls `body` for each request, with the request in `words`, and prints the object
// that it leaves in `answer`. `prelude` comes first.
inline PeerCommand python_peer(const std::string& body, const std::string& prelude = "pass") {
  std::string program = "import json, os, sys, time\n" + prelude +
                        "\n"
                        "for line in sys.stdin:\n"
                        "    words = line.strip().split(maxsplit=1)\n"
                        "    answer = {}\n";
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = std::min(body.find('\n', begin), body.size());
    program += "    " + body.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  program += "    print(json.dumps(answer), flush=True)\n";
  return {.name = "fake", .words = {"python3", "-c", program}};
}

// One that does all it should; a run takes it `ms`, and its output is what `rows` says.
inline PeerCommand good_peer(double ms, const std::string& rows = "[[[10, 20, 3, 4, 0.5, 0.25]]]") {
  return python_peer(
      "if words[0] == 'info': answer = {'engine': 'fake', 'version': '1.5', 'threads': 1, "
      "'precision': 'f32', 'load_ms': 12.5, 'macs': 1000}\n"
      "if words[0] == 'run': answer = {'times_ms': [" +
          std::to_string(ms) +
          "] * int(words[1])}\n"
          "if words[0] == 'rss': answer = {'rss_mb': 20, 'peak_rss_mb': 30, 'python_mb': 9}\n"
          "if words[0] == 'output': save(words[1], " +
          rows + "); answer = {'output': words[1]}",
      "import struct\n"
      "def save(path, rows):\n"
      "    header = \"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }\" % "
      "(len(rows), len(rows[0]), len(rows[0][0]))\n"
      "    header += ' ' * (117 - len(header)) + '\\n'\n"
      "    values = [value for image in rows for row in image for value in row]\n"
      "    with open(path, 'wb') as f:\n"
      "        f.write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(header)) + "
      "header.encode())\n"
      "        f.write(struct.pack('<%df' % len(values), *values))\n");
}

}  // namespace ferry::perf
