// The exceptions that this project throws, each with the exit code it leads to.
#pragma once

#include <stdexcept>
#include <string>

namespace sweep {

/// The root of everything this project throws on purpose. what() is written for the person at the
/// terminal: what was wrong, where, what is allowed, and what to do, in one or a few lines.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A mistake in a command line, a sweep file or the values it leads to.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// Layers or arrays whose shapes do not fit together. Names the layer or array and both shapes.
class ShapeError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// A data set or weights file that is missing, damaged or not what it says it is. Names the file.
class DataError : public Error {
 public:
  using Error::Error;
};

/// Output that cannot be written (disk full, permission, removed directory). Names the path.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A device that is not there, cannot be used, or failed. Names the device.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Training that cannot go on, for example because the loss is no longer a finite number.
class TrainingError : public Error {
 public:
  using Error::Error;
};

}  // namespace sweep
