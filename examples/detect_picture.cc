// detect_picture MODEL PICTURE: prints the boxes. Built against an installed ferry by the
// CMakeLists.txt beside it.
#include <ferry/ferry.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: detect_picture MODEL PICTURE\n");
    return 2;
  }
  auto detector = ferry::Detector::load(argv[1]);
  if (!detector.ok()) {
    std::fprintf(stderr, "%s\n", detector.error().message.c_str());
    return 1;
  }
  auto picture = ferry::read_image(argv[2]);
  if (!picture.ok()) {
    std::fprintf(stderr, "%s\n", picture.error().message.c_str());
    return 1;
  }
  auto detections = (*detector)->detect(picture->image);
  if (!detections.ok()) {
    std::fprintf(stderr, "%s\n", detections.error().message.c_str());
    return 1;
  }
  for (const ferry::Detection& d : *detections) {
    std::printf("%-12s %.3f  %7.1f %7.1f %7.1f %7.1f\n",
                (*detector)->class_names()[d.class_id].c_str(), d.confidence, d.box[0], d.box[1],
                d.box[2], d.box[3]);
  }
  return 0;
}
