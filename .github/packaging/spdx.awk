# SPDX-License-Identifier: MIT OR Unlicense
# spdx.awk - makes a bill of materials in SPDX 2.3 as JSON. It reads lines "licensed ./NAME" of files that name their license,
# then "SHA256 SHA1  ./NAME" of all files. Variables: version, digest (of the archive), code (the package verification code),
# created, copyright.

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
    print "    \"creators\": [\"Organization: the CCI in one header authors\", \"Tool: cci-package.sh-" version "\"]"
    print "  },"
    print "  \"documentDescribes\": [\"SPDXRef-Package\"],"
    print "  \"packages\": [{"
    print "    \"SPDXID\": \"SPDXRef-Package\","
    print "    \"name\": \"cci\","
    print "    \"versionInfo\": " text(version) ","
    print "    \"packageFileName\": " text("cci-" version ".tar.gz") ","
    print "    \"supplier\": \"Organization: the CCI in one header authors\","
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

/^licensed / {
    licensed[substr($0, 10)] = 1
    next
}

{
    count++
    name = substr($0, 64 + 1 + 40 + 2 + 1)
    printf "%s    {\"SPDXID\": \"SPDXRef-File-%d\", \"fileName\": %s,\n", (count > 1 ? ",\n" : ""), count, text(name)
    printf "     \"checksums\": [{\"algorithm\": \"SHA1\", \"checksumValue\": \"%s\"},\n", $2
    printf "       {\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"}],\n", $1
    printf "     \"licenseConcluded\": \"MIT OR Unlicense\", \"licenseInfoInFiles\": [%s],\n",
        (name in licensed ? "\"MIT\", \"Unlicense\"" : "\"NOASSERTION\"")
    printf "     \"copyrightText\": %s}", text(copyright)
}

END {
    print "\n  ],"
    print "  \"relationships\": ["
    print "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\","
    print "     \"relatedSpdxElement\": \"SPDXRef-Package\"}"
    for (i = 1; i <= count; i++)
        printf "    ,{\"spdxElementId\": \"SPDXRef-Package\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": \"SPDXRef-File-%d\"}\n", i
    print "  ]"
    print "}"
}
