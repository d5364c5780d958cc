# SPDX-License-Identifier: MIT OR Unlicense
# spdx.awk - lines "SHA256 SHA1  ./NAME" in, a bill of materials in SPDX 2.3 as JSON out. Variables: version, digest (of the
# archive), code (the package verification code), created, copyright.

function text(string) {
    gsub(/\\/, "\\\\", string)
    gsub(/"/, "\\\"", string)
    return "\"" string "\""
}

BEGIN {
    print "{"
    print "  \"spdxVersion\": \"SPDX-2.3\","
    print "  \"dataLicense\": \"CC0-1.0\","
    print "  \"SPDXID\": \"SPDXRef-DOCUMENT\","
    print "  \"name\": " text("cci-" version) ","
    print "  \"documentNamespace\": " text("https://spdx.org/spdxdocs/cci-" version "-" digest) ","
    print "  \"creationInfo\": {"
    print "    \"created\": " text(created) ","
    print "    \"creators\": [\"Tool: cci-package.sh-" version "\"]"
    print "  },"
    print "  \"documentDescribes\": [\"SPDXRef-Package\"],"
    print "  \"packages\": [{"
    print "    \"SPDXID\": \"SPDXRef-Package\","
    print "    \"name\": \"cci\","
    print "    \"versionInfo\": " text(version) ","
    print "    \"packageFileName\": " text("cci-" version ".tar.gz") ","
    print "    \"primaryPackagePurpose\": \"LIBRARY\","
    print "    \"downloadLocation\": \"NOASSERTION\","
    print "    \"filesAnalyzed\": true,"
    print "    \"packageVerificationCode\": {\"packageVerificationCodeValue\": " text(code) "},"
    print "    \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": " text(digest) "}],"
    print "    \"licenseConcluded\": \"MIT OR Unlicense\","
    print "    \"licenseDeclared\": \"MIT OR Unlicense\","
    print "    \"licenseInfoFromFiles\": [\"MIT\", \"Unlicense\"],"
    print "    \"copyrightText\": " text(copyright) ","
    print "    \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\","
    print "      \"referenceLocator\": " text("pkg:generic/cci@" version) "}]"
    print "  }],"
    print "  \"files\": ["
}

{
    name = substr($0, 64 + 1 + 40 + 2 + 1)
    printf "%s    {\"SPDXID\": \"SPDXRef-File-%d\", \"fileName\": %s,\n", (NR > 1 ? ",\n" : ""), NR, text(name)
    printf "     \"checksums\": [{\"algorithm\": \"SHA1\", \"checksumValue\": \"%s\"},\n", $2
    printf "       {\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"}],\n", $1
    printf "     \"licenseConcluded\": \"MIT OR Unlicense\", \"licenseInfoInFiles\": [\"NOASSERTION\"],\n"
    printf "     \"copyrightText\": %s}", text(copyright)
}

END {
    print "\n  ],"
    print "  \"relationships\": ["
    print "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\","
    print "     \"relatedSpdxElement\": \"SPDXRef-Package\"}"
    for (i = 1; i <= NR; i++)
        printf "    ,{\"spdxElementId\": \"SPDXRef-Package\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": \"SPDXRef-File-%d\"}\n", i
    print "  ]"
    print "}"
}
