// Point clouds and triangle meshes for TensorBoard's Mesh tab.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sweep::tbwriter {

/// One or more meshes of equal sizes. Owns nothing: the arrays must be valid until add_mesh() returns.
struct Mesh {
  std::span<const float> vertices = {};       // [batch, points, 3]
  std::span<const std::uint8_t> colors = {};  // [batch, points, 3]: red, green, blue; or empty
  std::span<const std::int32_t> faces = {};  // [batch, triangles, 3]: indices of points; empty: a point cloud
  std::int64_t batch = 1;                    // >= 1
  std::string_view config = {};              // JSON for the viewer: camera, lights, material of three.js
};

}  // namespace sweep::tbwriter
