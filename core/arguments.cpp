#include "core/arguments.h"
