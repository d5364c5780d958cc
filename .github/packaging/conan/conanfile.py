# SPDX-License-Identifier: MIT OR Unlicense
# Conan 2: `conan create .github/packaging/conan` in a checkout or an unpacked archive; nothing is downloaded.
import os
import re

from conan import ConanFile
from conan.tools.files import copy, load

HEADERS = ("cci.h", "cci_udp.h", "cci_verbs.h", "cci_sisci.h")


class CciRecipe(ConanFile):
    name = "cci"
    description = "Connections, messages and remote memory access over UDP, shared memory and RDMA, in one header"
    license = ("MIT", "Unlicense")
    topics = ("networking", "messaging", "rdma", "udp", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def _root(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._root(), "cci.h"))
        self.version = ".".join(re.search(r"#define CCI_VERSION_%s (\d+)" % part, text).group(1)
                                for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        for file in HEADERS + ("LICENSE",):
            copy(self, file, src=self._root(), dst=self.export_sources_folder)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        for file in HEADERS:
            copy(self, file, src=self.source_folder, dst=os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "cci")
        self.cpp_info.set_property("cmake_target_name", "cci::cci")
        self.cpp_info.set_property("pkg_config_name", "cci")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
