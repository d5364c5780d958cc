#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# mutants.sh [WORDS...] - proves the oracles of the soak test: small deliberate bugs, each put into a copy of cci.h, must be
# found within a bounded number of seeds. WORDS: only the mutants in whose name one of them is. A bug that can't be put in any
# more, since the line it changes is gone, is a failure: then the list below wants care. The reducer is tested on the first
# mutant that is found: what it prints must be short, and fail again.
set -u
cd "$(dirname "$0")/.." || exit 1

seeds=${SEEDS:-300}
cc=${CC:-cc}
out=build/mutants
rm -rf "$out"
mkdir -p "$out" || exit 1
killed=0 bad=0 reduced=0
words=$(printf '%s\n' "$@")

# A mutant is wanted if no words were given, or one is in its name.
wanted() {
    [ -n "$words" ] || return 0
    printf '%s\n' "$words" | while read -r word; do
        case $1 in *"$word"*) echo yes ;; esac
    done | grep -q yes
}

# reduce PROGRAM SEED: the shortened schedule has at most 40 steps, and fails.
reduce() {
    reduced=1
    timeout 300 "$1" --seed "$2" --reduce >"$1.log" 2>&1
    steps=$(sed -n 's/^\([0-9]*\) of [0-9]* steps are enough.*/\1/p' "$1.log")
    replay=$(sed -n 's/^replay: //p' "$1.log" | tail -n 1)
    if [ "${steps:-99}" -gt 40 ] || sh -c "$replay" >"$1.log" 2>&1 || ! grep -aq '^FAIL: oracle' "$1.log"; then
        echo "UNREDUCED $name: ${steps:-?} steps by $replay"
        bad=$((bad + 1))
    else
        echo "reduced   $name: $steps steps by $replay"
    fi
}

# mutant NAME SED-SCRIPT [FLAGS...]
mutant() {
    name=$1
    wanted "$name" || return
    dir=$out/$(echo "$name" | tr -c 'a-z0-9\n' '-')
    mkdir -p "$dir"
    sed "$2" cci.h >"$dir/cci.h"
    shift 2
    if cmp -s cci.h "$dir/cci.h"; then
        echo "GONE      $name: the line that it changes is not there"
        bad=$((bad + 1))
        return
    fi
    if ! "$cc" -std=gnu11 -O1 -w "$@" -I"$dir" -o "$dir/soak" tests/soak.c; then
        echo "BROKEN    $name: does not compile"
        bad=$((bad + 1))
    elif "$dir/soak" --first 1 --seeds "$seeds" --stop >"$dir/log" 2>&1; then
        echo "SURVIVED  $name"
        bad=$((bad + 1))
    else
        echo "killed    $name: $(grep -a '^FAIL' "$dir/log" | head -n 1 | cut -c 7-110) (seed $(sed -n \
            's/^replay.*--seed //p' "$dir/log" | head -n 1))"
        killed=$((killed + 1))
        [ "$reduced" -eq 1 ] || reduce "$dir/soak" "$(sed -n 's/^replay.*--seed //p' "$dir/log" | head -n 1)"
    fi
    rm -rf "$dir"
}

# in_function NAME CHANGE: a sed script that changes lines of one function only
in_function() {
    printf '/^[A-Za-z].*[ *]%s(/,/^}/ { %s }' "$1" "$2"
}

mutant 'no check for duplicates' "$(in_function cci__rel_input_run 's/if (have == CCI__RANGE_OLD)/if (0)/')"
mutant 'acknowledged though refused' "$(in_function cci_rel_input 's/if (outcome == CCI__REFUSED)/if (0)/')"
mutant 'one byte beyond the end of a registration' \
    "$(in_function cci_rma_address 's/offset > found->length - length/offset > found->length - length + 1/')"
mutant 'no probe timer' "$(in_function cci_rel_deadline 's/if (!cci__list_empty(&rel->flight))/if (0)/')"
mutant 'an acknowledgement waits for the next packet' "$(in_function cci__rel_ack_is_due 's/if (now_ns < rel->ack_at_ns \&\&/if (1 ||/'); $(in_function cci_rel_deadline 's/rel->ack_count ? rel->ack_at_ns : CCI__NEVER/CCI__NEVER/'); $(in_function cci_rel_timeout 's/rel->ack_now = 1;/;/')"
mutant 'tokens used twice' "$(in_function cci_conn_open 's/words\[0\] = ++table->counter/words[0] = 1/')"
mutant 'ordered messages as they come' "$(in_function cci_rel_begin 's/rel->ordered = attribute == CCI_CONN_ATTR_RO/rel->ordered = 0/')"
mutant 'complete when it is sent' "$(in_function cci__rel_track 's/packet->sent = sent;/packet->sent = sent; if (sent->item) { cci_rel_item_t *i = sent->item; sent->item = NULL; if (--i->pieces == 0 \&\& (i->flags \& CCI__ITEM_SENT)) cci__rel_finish(rel, i); }/')"
mutant 'a receive buffer is lost' "$(in_function cci__dgram_next_message 's/buffer->refs++;/buffer->refs += 1 + (made->base.pub.recv.len == 16);/')"
mutant 'a record is lost' "$(in_function cci__rel_lost 's/cci__rel_free_record(rel, sent);/cci__list_remove(\&sent->node);/')"
mutant 'wrong offset of a fragment' "$(in_function cci__rel_write_fragment 's/cci__store32(at, fragment);/cci__store32(at, fragment > 8 ? fragment - 8 : fragment);/')"
mutant 'a write does not wait for the fence' "$(in_function cci_rel_write 's/(fence && rel->rma_open > 0)/0/')"
mutant 'a read does not wait for the fence' "$(in_function cci_rel_extern 's/(fence && rel->rma_open > 0)/0/')"
mutant 'any token will do' "$(in_function cci_conn_find 's/conn->token == token/1/')"
mutant 'no right to write is needed' "$(in_function cci__sink_place 's/CCI_FLAG_WRITE/0/')"
mutant 'no right to read is needed' "$(in_function cci__rma_input_read 's/CCI_FLAG_READ)/0)/'); $(in_function cci_rma_answer 's/CCI_FLAG_READ)/0)/')"
mutant 'a read is complete with a segment missing' \
    "$(in_function cci__rma_input_data 's/if (chunk->missing == 0)/if ((chunk->missing \& (chunk->missing - 1)) == 0)/')"
mutant 'no time-out' "$(in_function cci_rel_timeout 's/if (now_ns >= rel->expire_ns && rel->reliable)/if (0)/')"
mutant 'deregistered memory is still written' "$(in_function cci_rma_remove 's/region->key = 0;//; s/region->length = 0;//')"
mutant 'a segment of a read counts each time it comes' "$(in_function cci__rma_input_data 's/ || !(chunk->missing >> number & 1)//')"
mutant 'the message does not wait for its write' "$(in_function cci__rel_input_run 's/after = cci__rel_have(rel, first - 1, first) != CCI__RANGE_OLD/after = 0/')"
mutant 'a write is complete with a gap' "$(in_function cci__rel_fill 's/part->ranges\[0\].lo != 0 || //')"
mutant 'a connection that is closed stays in the table' "$(in_function cci_conn_close 's/table->used--;//')"
mutant 'completions are given twice' "$(in_function cci__rel_complete_ops 's/if (--op->parts == 0)/if (--op->parts == 0 || op->link[1].op)/')"
mutant 'the last segment is not sent again' "$(in_function cci__rel_lost 's/if (!sent->item) {/if (!sent->item || (sent->item->kind == CCI__ITEM_BULK \&\& sent->offset + sent->length == sent->item->bulk.length)) { if (sent->item) sent->item->pieces--;/')"
mutant 'an acknowledgement wants to be acknowledged' "$(in_function cci_rel_input 's/if (rel->reliable ? eliciting : pinged)/if (rel->reliable)/')"
mutant 'a wrong checksum is no harm' "$(in_function cci__dgram_check 's/== cci__load32(bytes + .length)/!= 0/')"
mutant 'what does not open is taken' "$(in_function cci__dgram_open_sealed 's/.length - clear) == 0)/*length - clear) <= 0)/')"
mutant 'a nonce for two packets of the handshake' "$(in_function cci__dgram_seal 's/conn->sealed_count++/conn->sealed_count/')"
mutant 'keepalive on an unreliable connection' "$(in_function cci__dgram_new_keepalive_us 's/cci__dgram_is_reliable(conn)/1/')"
mutant 'a lost silent message is forgotten' "$(in_function cci__rel_lost 's/if (!sent->item) {/if (sent->item \&\& !sent->item->ops \&\& sent->item->kind == CCI__ITEM_RUN \&\& !(sent->item->flags \& CCI__ITEM_VOID)) { if (--sent->item->pieces == 0 \&\& (sent->item->flags \& CCI__ITEM_SENT)) { cci_rel_item_t *i = sent->item; sent->item = NULL; cci__rel_finish(rel, i); } sent->item = NULL; } if (!sent->item) {/')"
mutant 'more is sent to a new address than came from there' "$(in_function cci__dgram_send_reset 's/uint32_t size = CCI__HEADER_SIZE;/uint32_t size = CCI__HEADER_SIZE + 160;/')"
mutant 'a look-up walks the table' "$(in_function cci_conn_find 's/cci_conn_t .conn = cci_conn_at(table, index);/cci_conn_t *conn; uint32_t i; for (i = 0; i < table->slab_count * CCI__CONN_SLAB; i++) if (cci_conn_at(table, i)->token == token) index = i; conn = cci_conn_at(table, index);/')" -DSOAK_COUNTS_WORK -fsanitize-coverage=trace-pc
mutant 'each item that is given up looks at all packets' "$(in_function cci_rel_abort 's/CCI__CONTAINER(node, cci_rel_item_t, node)->pieces = 0;/cci__rel_forget_pieces(rel, CCI__CONTAINER(node, cci_rel_item_t, node));/')" -DSOAK_COUNTS_WORK -fsanitize-coverage=trace-pc

echo "$killed mutants killed, $bad not"
[ "$bad" -eq 0 ] && [ "$killed" -gt 0 ]
