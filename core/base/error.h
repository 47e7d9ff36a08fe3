// The exceptions that this project throws. tools/command_line.cpp maps each to an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace sweep {

/// Base of every exception that this project throws on purpose. what() is shown to the user as it is: it says
/// what is wrong, where, what is allowed and what to do, in one line or a few.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An invalid command line, sweep file or argument.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// Shapes of layers or arrays that do not match. Names the layer or array and both shapes.
class ShapeError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// A data set or weights file that is missing, damaged or of the wrong kind. Names the file.
class DataError : public Error {
 public:
  using Error::Error;
};

/// An existing file that cannot be opened or read now: no permission, too many open files, an error of the
/// disk. Its content may be whole, so it must not be overwritten. Names the file and the reason.
class ReadError : public DataError {
 public:
  using DataError::DataError;
};

/// Output that cannot be written: disk full, no permission, directory removed. Names the path.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A device that does not exist, cannot be used, or failed. Names the device.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Training that cannot continue, for example because the loss is no longer finite.
class TrainingError : public Error {
 public:
  using Error::Error;
};

}  // namespace sweep
