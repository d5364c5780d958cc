# SPDX-License-Identifier: MIT OR Unlicense
# In a checkout or an unpacked archive this is an overlay port that downloads nothing:
#     vcpkg install cci --overlay-ports=.github/packaging/vcpkg
# `make dist URL=...` fills in address and digest: build/dist/vcpkg/cci is a port for a registry.
set(cci_url "")
set(cci_sha512 0)

if(cci_url)
  vcpkg_download_distfile(archive URLS "${cci_url}" FILENAME "cci-${VERSION}.tar.gz" SHA512 ${cci_sha512})
  vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${archive}")
else()
  get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
endif()

set(VCPKG_BUILD_TYPE release) # headers only
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}/.github/packaging/cmake"
  OPTIONS -DCCI_TOOLS=OFF -DCCI_SHARED=OFF -DCCI_INSTALL=ON "-DCCI_CMAKEDIR=share/${PORT}"
)
vcpkg_cmake_install()
vcpkg_fixup_pkgconfig()
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
