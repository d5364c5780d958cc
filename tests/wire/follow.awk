# SPDX-License-Identifier: MIT OR Unlicense
# follow.awk - what the dissector says of connections and round trips, held to the packets themselves. Its input is what
# follow() of wire.sh has tshark print, one packet in each line. Prints what is wrong, and at the end how much was looked at.

function wrong(text) {
    print "frame " $1 ": " text
    faults++
}

# A token belongs to one connection.
function belongs(token) {
    if (token == "" || token == "0x0000000000000000") return
    if (token in owner && owner[token] != stream) wrong("token " token " is of connection " owner[token] ", not " stream)
    owner[token] = stream
}

BEGIN { FS = ";" }

{
    frame = $1; time = $2; from = $3; to = $4; stream = $5; type = $6; number = $7
    largest = $8; delay = $9; acks = $10; round_trip = $11; repeats = $12
    if (stream == "") next
    packets++
    if (type != 8) belongs($13)
    belongs($14)
    belongs($15)
    if (type != 7) next
    pair = from " " $16 < to " " $17 ? from " " $16 "," to " " $17 : to " " $17 "," from " " $16
    if (!(pair in of_pair) || seen[$13] == "") of_pair[pair] = stream # another connection may have the indices later
    seen[$13] = 1
    if (of_pair[pair] != stream) wrong("both ways of " pair " are not one connection")
    time_of[frame] = time
    way_of[frame] = from ">" to
    number_of[frame] = number
    stream_of[frame] = stream
    if (repeats != "") {
        repeated++
        if (stream_of[repeats] != stream || number_of[repeats] == number) wrong("does not repeat frame " repeats)
    }
    if (largest != "" && acks == "" && (stream, to ">" from, largest) in sent)
        wrong("does not say that it acknowledges " sent[stream, to ">" from, largest])
    if (acks != "") {
        waited = time - time_of[acks] - delay * 4e-6
        if (waited < 0) waited = 0
        acknowledged++
        if (stream_of[acks] != stream || number_of[acks] != largest) wrong("does not acknowledge frame " acks)
        if (round_trip - waited > 1e-6 || waited - round_trip > 1e-6) wrong("round trip " round_trip ", not " waited)
        delete sent[stream, way_of[acks], largest]
    }
    sent[stream, from ">" to, number] = frame
}

END {
    print packets + 0 " packets, " acknowledged + 0 " acknowledge others, " repeated + 0 " are sent again, " faults + 0 " are wrong"
}
