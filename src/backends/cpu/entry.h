// The CPU backend's entry, linked in instead of loaded; otherwise like any other's.
#pragma once

#include "ferry/backend.h"

extern "C" const ferry_backend* ferry_cpu_backend_entry(const ferry_host* host);
