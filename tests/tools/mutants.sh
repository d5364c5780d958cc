#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# mutants.sh [WORDS...] - small deliberate bugs, each put into a copy of a header. They prove the oracles of the soak tests, which
# must find them within a bounded number of seeds (cci.h) or rounds (cci_sisci.h), and the tests of the attackers: for each promise
# the guard that keeps it is taken out, and the test that SECURITY.md names for it must fail. WORDS: only the mutants in whose name
# one of them is. A bug that can't be put in any more, since the line it changes is gone, is a failure: then the list below wants
# care. The reducer is tested on the first mutant that the soak test finds: what it prints must be short, and fail again
# (REDUCE=no: not now).
set -u
cd "$(dirname "$0")/../.." || exit 1

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

# plant NAME SED-SCRIPT [HEADER]: a copy of cci.h in $dir, and of the other header, if there is one, with the bug in it; fails if it
# is not wanted, or has no place any more.
plant() {
    name=$1 header=${3:-cci.h}
    wanted "$name" || return
    dir=$out/$(echo "$name" | tr -c 'a-z0-9\n' '-')
    mkdir -p "$dir"
    cp cci.h "$dir" && cp "$header" "$dir"
    # One function after the other: none of the changes may have lost its place.
    if ! printf '%s\n' "$2" | sed 's/ }; \/^/ }\n\/^/g' | while read -r script; do
        mv "$dir/$header" "$dir/before.h"
        sed "$script" "$dir/before.h" >"$dir/$header"
        ! cmp -s "$dir/before.h" "$dir/$header" || exit 1
    done; then
        echo "GONE      $name: the line that it changes is not there"
        bad=$((bad + 1))
        return 1
    fi
}

# mutant NAME SED-SCRIPT [FLAGS...]
mutant() {
    plant "$1" "$2" || return
    shift 2
    if ! "$cc" -std=gnu11 -O1 -w "$@" -I"$dir" -I. -o "$dir/soak" tests/soak/soak.c; then
        echo "BROKEN    $name: does not compile"
        bad=$((bad + 1))
    elif "$dir/soak" --first 1 --seeds "$seeds" --stop >"$dir/log" 2>&1; then
        echo "SURVIVED  $name"
        bad=$((bad + 1))
    else
        echo "killed    $name: $(grep -a '^FAIL' "$dir/log" | head -n 1 | cut -c 7-110) (seed $(sed -n \
            's/^replay.*--seed //p' "$dir/log" | head -n 1))"
        killed=$((killed + 1))
        [ "$reduced" -eq 1 ] || [ "${REDUCE:-yes}" = no ] || reduce "$dir/soak" "$(sed -n 's/^replay.*--seed //p' "$dir/log" | head -n 1)"
    fi
    rm -rf "$dir"
}

# disturbing NAME SED-SCRIPT: with a bug in cci_sisci.h, the soak test of processes fails.
disturbing() {
    plant "$1" "$2" cci_sisci.h || return
    if ! "$cc" -std=gnu11 -O1 -w -I"$dir" -I. -o "$dir/soak" tests/soak/soak_sisci.c -pthread; then
        echo "BROKEN    $name: does not compile"
        bad=$((bad + 1))
    elif timeout 100 "$dir/soak" --first 1 --rounds 10 >"$dir/log" 2>&1; then
        echo "SURVIVED  $name"
        bad=$((bad + 1))
    else
        echo "killed    $name: $(grep -a 'does not hold' "$dir/log" | head -n 1 | cut -c 1-110)"
        killed=$((killed + 1))
    fi
    rm -rf "$dir"
}

# unguarded NAME TEST SED-SCRIPT: without a guard, that test of tests/attack/hostile.c fails.
unguarded() {
    plant "$1" "$3" || return
    cp cci_udp.h "$dir"
    if ! "$cc" -std=gnu11 -O1 -w -fsanitize-coverage=trace-pc -I"$dir" -I. -o "$dir/hostile" tests/attack/hostile.c -lcmocka -pthread; then
        echo "BROKEN    $name: does not compile"
        bad=$((bad + 1))
    elif timeout 100 "$dir/hostile" "$2" >"$dir/log" 2>&1 || ! grep -aq "RUN.*$2" "$dir/log"; then
        echo "SURVIVED  $name: $2"
        bad=$((bad + 1))
    else
        echo "killed    $name: $2"
        killed=$((killed + 1))
    fi
    rm -rf "$dir"
}

# in_function NAME CHANGE: a sed script that changes lines of one function only
in_function() {
    printf '/^[A-Za-z].*[ *]%s(/,/^}/ { %s }' "$1" "$2"
}

mutant 'no check for duplicates' "$(in_function cci__rel_wants_run 's/if (have == CCI__RANGE_OLD)/if (0)/')"
mutant 'acknowledged though refused' "$(in_function cci_rel_input 's/if (frames.outcome == CCI__REFUSED)/if (0)/')"
mutant 'one byte beyond the end of a registration' \
    "$(in_function cci_rma_address 's/offset > found->length - length/offset > found->length - length + 1/')"
mutant 'no probe timer' "$(in_function cci_rel_deadline 's/at = cci__min64(at, cci__rel_pto_at_ns(rel));/;/')"
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
mutant 'no right to write is needed' "$(in_function cci__dgram_on_place 's/CCI_FLAG_WRITE/0/')"
mutant 'no right to read is needed' "$(in_function cci__rma_input_read 's/CCI_FLAG_READ)/0)/'); $(in_function cci_rma_answer 's/CCI_FLAG_READ)/0)/')"
mutant 'a read is complete with a segment missing' \
    "$(in_function cci__rma_input_data 's/if (chunk->missing == 0)/if ((chunk->missing \& (chunk->missing - 1)) == 0)/')"
mutant 'no time-out' "$(in_function cci_rel_timeout 's/if (now_ns >= rel->expire_ns && rel->reliable)/if (0)/')"
mutant 'deregistered memory is still written' "$(in_function cci_rma_remove 's/region->key = 0;//; s/region->length = 0;//')"
mutant 'a segment of a read counts each time it comes' "$(in_function cci__rma_input_data 's/ || !(chunk->missing >> number & 1)//')"
mutant 'the message does not wait for its write' "$(in_function cci__rel_input_run 's/waits = cci__rel_must_wait(rel, bytes + begin, first, last)/waits = 0/')"
mutant 'an answer does not wait for reads' "$(in_function cci__rel_deliver_ordered 's/if (CCI__UNLIKELY(rel->by.gated || cci__rel_is_behind_read(rel, rel->taken)))/if (0)/')"
mutant 'what was delivered out of order is not told' "$(in_function cci__rel_open_for 's/if (CCI__UNLIKELY(rel->untold))/if (0)/')"
mutant 'a write is complete with a gap' "$(in_function cci__rel_fill 's/part->ranges\[0\].lo != 0 || //')"
mutant 'a connection that is closed stays in the table' "$(in_function cci_conn_close 's/table->used--;//')"
mutant 'completions are given twice' "$(in_function cci__rel_complete_ops 's/if (--op->link_count == 0)/if (--op->link_count == 0 || op->link[1].op)/')"
mutant 'the last segment is not sent again' "$(in_function cci__rel_lost 's/if (!sent->item) {/if (!sent->item || (sent->item->kind == CCI__ITEM_BULK \&\& sent->offset + sent->length == sent->item->bulk.length)) { if (sent->item) sent->item->pieces--;/')"
mutant 'an acknowledgement wants to be acknowledged' "$(in_function cci__rel_received 's/if (is_eliciting)/if (rel->reliable)/')"
mutant 'a wrong checksum is no harm' "$(in_function cci__dgram_check 's/== cci__load32(bytes + .length)/!= 0/')"
mutant 'what does not open is taken' "$(in_function cci_conn_open_sealed 's/.length - clear) == 0)/*length - clear) <= 0)/')"
mutant 'a nonce for two packets of the handshake' "$(in_function cci_conn_seal 's/peer->sealed_count++/peer->sealed_count/')"
mutant 'a loss that was none keeps the window small' "$(in_function cci__flow_undo 's/if (flow->window < before->window)/if (0)/')"
mutant 'overtaking packets stay losses' "$(in_function cci__rel_reordered 's/if (quarters < rel->reordering) return;/if (quarters > 0) return;/')"
mutant 'an undo without all packets' "$(in_function cci__rel_was_late 's/--rel->late->head.missing == 0/--rel->late->head.missing < 9/')"
mutant 'keepalive on an unreliable connection' "$(in_function cci__endpoint_keepalive_us 's/cci__conn_is_reliable(conn)/1/')"
mutant 'a lost silent message is forgotten' "$(in_function cci__rel_lost 's/if (!sent->item) {/if (sent->item \&\& !sent->item->ops \&\& sent->item->kind == CCI__ITEM_RUN \&\& !(sent->item->flags \& CCI__ITEM_VOID)) { if (--sent->item->pieces == 0 \&\& (sent->item->flags \& CCI__ITEM_SENT)) { cci_rel_item_t *i = sent->item; sent->item = NULL; cci__rel_finish(rel, i); } sent->item = NULL; } if (!sent->item) {/')"
mutant 'more is sent to a new address than came from there' "$(in_function cci_conn_output_reply 's/uint32_t size = CCI__HEADER_SIZE;/uint32_t size = CCI__HEADER_SIZE + 160;/')"
mutant 'a look-up walks the table' "$(in_function cci_conn_find 's/cci_conn_t .conn = cci_conn_at(table, index);/cci_conn_t *conn; uint32_t i; for (i = 0; i < table->slab_count * CCI__CONN_SLAB; i++) if (cci_conn_at(table, i)->token == token) index = i; conn = cci_conn_at(table, index);/')" -DSOAK_COUNTS_WORK -fsanitize-coverage=trace-pc
mutant 'each item that is given up looks at all packets' "$(in_function cci_rel_abort 's/CCI__CONTAINER(node, cci_rel_item_t, node)->pieces = 0;/cci__rel_forget_pieces(rel, CCI__CONTAINER(node, cci_rel_item_t, node));/')" -DSOAK_COUNTS_WORK -fsanitize-coverage=trace-pc
mutant 'an atomic is done again when its answer is lost' "$(in_function cci__rma_input_atomic 's/    if (ahead < CCI__RMA_ATOMICS .*/    if (ahead >= 0xfffffff0u) (void)cci__atomic_do(cci_rma_address(table, cci__load64(frame + 8), cci__load32(frame + 16), cci__load64(frame + 24), frame[2], CCI_FLAG_READ | CCI_FLAG_WRITE), frame[2], frame[1], cci__load64(frame + 32), cci__load64(frame + 40), \&value);\n&/')"
mutant 'the message of a list does not wait for its other parts' "$(in_function cci__rmav_issue 's/if (has_message \&\& list->under_way > 0) return;/;/')"
mutant 'a list is complete without its last part' "$(in_function cci__rmav_issue 's/status = cci__walk_issue(/status = list->has_begun \&\& bytes == list->walk.bytes_left \&\& !has_message ? (list->under_way--, CCI_SUCCESS) : cci__walk_issue(/')"
mutant 'a fenced message does not wait for the RMAs before it' "$(in_function cci_rel_send_fenced 's/if (rel->rma_open == 0 /if (1 || rel->rma_open == 0 /')"
mutant 'whoever has the port answers for the name' "$(in_function cci__conn_input_request 's/CCI__NAME_PLACE) != table->name)/CCI__NAME_PLACE) != table->name \&\& 0)/')"
mutant 'messages behind a withdrawal are told at once' \
    's/!(is_memory \&\& (item->flags \& CCI__ITEM_DONE))/!(item->flags \& CCI__ITEM_DONE)/'

disturbing 'a child of fork goes on listening' "$(in_function cci__sci_after_fork_in_child 's/cci__sci_close_in_child(sd);/;/')"
disturbing 'a child of fork keeps the OS handle' "$(in_function cci__sisci_forked 's/cci__sisci_close_fd(fd\[i\]);/;/')"
mutant 'links do not hear of a fork' "$(in_function cci__fork_in_child 's/if (endpoint->forked != NULL) endpoint->forked(endpoint);/;/')"
mutant 'a fork is not passed on to the link' "$(in_function cci__dgram_forked 's/ep->base.info.forked(ep->base.handle);/;/')"
mutant 'a fork leaves endpoints alive in the child' "$(in_function cci__fork_in_child 's/endpoint->ops = &cci__dead_ops;/;/')"
mutant 'a fork is not noticed' "$(in_function cci__fork_watch 's/is_watching = pthread_atfork.* == 0;/is_watching = 1;/')"
mutant 'a fork leaves the library as it was' "$(in_function cci__fork_in_child 's/cci__core.is_forked = 1;/;/')"
mutant 'each call after a fork writes a line' "$(in_function cci__fork_refuse 's/cci__core.has_told_fork = 1;/;/')"

unguarded 'no cookie is asked for' a_million_spoofed_requests_take_no_memory_and_honest_peers_still_connect \
    "$(in_function cci__conn_input_request 's/table->unproven < table->unproven_most/1/')"
unguarded 'no cookie is asked for over UDP' over_udp_a_flood_gets_no_more_than_it_sent_and_does_no_harm \
    "$(in_function cci__conn_input_request 's/table->unproven < table->unproven_most/1/')"
unguarded 'requests take all buffers' spoofed_requests_that_wait_leave_buffers_to_honest_peers \
    "$(in_function cci__dgram_refusal 's/reserve = ep->base.recv_buf_count .*DGRAM_FEW);/reserve = 0;/'); $(in_function cci__conn_input_request 's/table->unproven < table->unproven_most/1/')"
unguarded 'a request in pieces waits for ever' requests_that_are_never_completed_do_not_keep_others_out \
    "$(in_function cci__dgram_begin_collecting 's/if (other && /if (0 \&\& /')"
unguarded 'a reset is longer than what it answers' nobody_gets_more_bytes_than_came_in_its_name_before_its_address_is_proven \
    "$(in_function cci_conn_output_reply 's/uint32_t size = CCI__HEADER_SIZE;/uint32_t size = CCI__HEADER_SIZE + 64;/')"
unguarded 'an accept is repeated to who has proven nothing' nobody_gets_more_bytes_than_came_in_its_name_before_its_address_is_proven \
    "$(in_function cci__dgram_tell_at 's/cci__dgram_commit_bare(.*/&\n    if (type == CCI__PKT_ACCEPT \&\& conn->conn.unproven) cci__dgram_commit_bare(ep, to, conn, size, NULL, 0);/')"
unguarded 'a group answers' a_group_answers_nothing \
    "$(in_function cci__dgram_input_group 's/active->rel.ack_count = active->rel.nack_count = 0;//')"
unguarded 'tokens are counted' tokens_and_keys_are_64_distinct_bits_from_the_secure_source \
    "$(in_function cci_conn_open 's/cci__siphash(table->key, words, 2)/words[0] * 0x9e3779b97f4a7c15u/')"
unguarded 'keys are counted' tokens_and_keys_are_64_distinct_bits_from_the_secure_source \
    "$(in_function cci_rma_add 's/cci__siphash(table->key, words, 2) | 1/(words[0] << 32 | words[0]) * 2 + 1/')"
unguarded 'half of a token is enough' ten_million_guesses_are_dropped_and_counted_and_have_no_effect \
    "$(in_function cci_conn_find 's/conn->token == token/(uint32_t)conn->token == (uint32_t)token/')"
unguarded 'half of a key is enough' millions_of_guesses_at_a_key_read_and_write_nothing \
    "$(in_function cci_rma_find 's/table->regions\[region\].key == key/(uint32_t)table->regions[region].key == (uint32_t)key/')"
unguarded 'a refusal says that the key was right' a_refusal_does_not_tell_what_was_wrong \
    "$(in_function cci__rma_input_read 's/        table->denied++;/        table->denied++; if (!cci_rma_find(table, request->key, request->region)) return 48;/')"
unguarded 'any reset ends a connection' a_flood_of_forged_packets_does_not_reset_slow_or_inject_into_a_connection \
    "$(in_function cci__conn_input_reset 's/conn->peer_token != in->header.token || //')"
unguarded 'any packet is taken in' a_flood_of_forged_packets_does_not_reset_slow_or_inject_into_a_connection \
    "$(in_function cci_conn_find 's/conn->token == token/1/')"
unguarded 'any answer is one to a client' forged_answers_do_not_touch_a_connecting_client \
    "$(in_function cci_conn_input 's/cci_conn_find(table, in->header.index, in->header.token)/cci_conn_at(table, in->header.index)/')"
unguarded 'a server may ask for longer messages' an_answer_that_allows_longer_messages_than_were_asked_for_is_ignored \
    "$(in_function cci__conn_input_accept 's/ || accept.max_send_size > conn->pub.max_send_size//')"
unguarded 'the hash has no key' chosen_addresses_indices_and_tokens_make_no_long_chains \
    "$(in_function cci_conn_bucket 's/cci__siphash(table->key, words, 5)/(words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4])/')"
unguarded 'an end that wraps around' a_peer_touches_nothing_outside_what_was_registered_for_it \
    "$(in_function cci_rma_address 's/length > found->length || offset > found->length - length/offset + length > found->length/')"
unguarded 'a read needs no right' a_peer_touches_nothing_outside_what_was_registered_for_it \
    "$(in_function cci__rma_input_read 's/CCI_FLAG_READ)) {/0)) {/'); $(in_function cci_rma_answer 's/CCI_FLAG_READ)/0)/')"
unguarded 'a key outlives its registration' a_handle_of_another_endpoint_or_one_that_is_gone_opens_nothing \
    "$(in_function cci_rma_remove 's/region->key = 0;//; s/region->length = 0;//'); $(in_function cci_rma_add 's/words\[0\] = ++table->counter/words[0] = 1/')"
unguarded 'three times what came is no limit' a_peer_cannot_direct_answers_at_a_third_party \
    "$(in_function cci_conn_path_deadline 's/<= 3 \* path->received/<= 300 * path->received/')"
unguarded 'a new address need not be proven' a_peer_cannot_direct_answers_at_a_third_party \
    "$(in_function cci__dgram_elsewhere 's/cci__dgram_challenge(ep, conn);/cci_conn_move(\&ep->conns, \&conn->conn, from, ep->now_ns);/')"
unguarded 'any response proves an address' a_wrong_or_late_response_does_not_move_a_peer \
    "$(in_function cci_conn_path_input 's/path->challenge && path->challenge == bits/path->challenge/')"
unguarded 'a peer that moves is not followed' a_peer_whose_address_changes_is_followed_when_it_has_proven_the_new_one \
    "$(in_function cci_conn_move 's/conn->peer = \*to;//')"
unguarded 'a challenge is sent once' a_challenge_that_is_lost_is_repeated \
    "$(in_function cci_conn_path_deadline 's/? path->again_ns/? (path->sent ? CCI__NEVER : path->again_ns)/')"
unguarded 'nobody is ended who is stuck' a_thousand_peers_that_leave_gaps_do_not_keep_others_from_sending \
    "$(in_function cci__dgram_evict 's/if (since_ns == CCI__NEVER || /if (1 || /')"
unguarded 'no shares of buffers' early_messages_of_one_connection_leave_their_share_to_others \
    "$(in_function cci__dgram_buffer_for 's/cci__share(active->rel.buffers_held, left - reserve)/1/')"
unguarded 'what comes early keeps newcomers out' early_messages_do_not_keep_others_from_connecting \
    "$(in_function cci__dgram_buffer_for 's/(count < CCI__DGRAM_FEW ? count > 1 || active->rel.reliable : cci__max32(count \/ 16, 2))/0/'); $(in_function cci__dgram_refusal 's/cci__dgram_reclaim(ep, 0);/;/')"
unguarded 'no buffers for what is due' messages_that_wait_for_a_write_that_never_comes_leave_buffers_to_others \
    "$(in_function cci__dgram_buffer_for 's/(in_order ? 0 : early)/0/')"
unguarded 'want of buffers is not noticed' fragments_that_are_never_completed_do_not_hold_all_buffers \
    "$(in_function cci__dgram_buffer_for 's/ep->pool.starved = 1/ep->pool.starved = 0/')"
unguarded 'pieces stay for ever' unreliable_fragments_leave_buffers_to_others_and_go_after_a_second \
    "$(in_function cci__rel_unreliable_reassembly 's/rel->expire_ns = now_ns + 1000 \* CCI__MS;//')"
unguarded 'what is sent to a group is due' pieces_that_anybody_sends_to_a_group_leave_buffers_to_others \
    "$(in_function cci__dgram_on_keep 's/in_order = 0;/;/')"
unguarded 'pieces of a group without number' pieces_that_anybody_sends_to_a_group_leave_buffers_to_others \
    "$(in_function cci__rel_unreliable_reassembly 's/if (count >= CCI__REL_UNRELIABLE_REASSEMBLIES)/if (0)/'); $(in_function cci__dgram_buffer_for 's/(in_order ? 0 : early)/0/; s/cci__share(active->rel.buffers_held, left - reserve)/1/')"
unguarded 'no shares of long writes' writes_that_are_never_completed_do_not_keep_others_from_writing \
    "$(in_function cci__rel_reassembly 's/!cci__share(rel->reassembly_count, rel->pool->reassembly_free - reserve)/0/')"
unguarded 'no shares of answers' requests_for_reads_leave_their_share_to_others \
    "$(in_function cci__rma_input_read 's/!cci__share(reader->request_count, table->request_free) || reader->request_count >= 256/table->request_free == 0/')"
unguarded 'no shares of records' a_peer_that_stops_acknowledging_leaves_records_to_others \
    "$(in_function cci__rel_record_share 's/return cci__share_for_long(.*);/return rel->pool->record_free > 0;/')"
unguarded 'many chunks before the first answer' reads_that_a_peer_does_not_answer_leave_chunks_to_others \
    "$(in_function cci__rma_chunk_size 's/reader->srtt_ns == 0 ? 3/reader->srtt_ns == 0 ? 60/')"
unguarded 'silent readers take everything' peers_that_fall_silent_in_the_middle_of_reads_leave_chunks_to_others \
    "$(in_function cci__rma_may_ask 's/cci__share_for_long(reader->chunk_count, table->chunk_free, table->chunk_count)/cci__share(reader->chunk_count, table->chunk_free)/')"
unguarded 'silent writers take everything' peers_that_fall_silent_in_the_middle_of_writes_leave_records_to_others \
    "$(in_function cci__rel_record_share 's/cci__share_for_long(rel->record_count, rel->pool->record_free, rel->pool->record_total)/cci__share(rel->record_count, rel->pool->record_free)/')"
unguarded 'who is asked for a sign of life keeps what it has' keepalives_to_silent_peers_do_not_hold_what_others_need \
    "$(in_function cci__dgram_reclaim 's/if (take) cci_rel_forget/if (0) cci_rel_forget/')"
unguarded 'each read that is asked for looks at all others' a_packet_makes_bounded_work_whatever_is_in_it \
    "$(in_function cci__rma_input_read 's/    if (length < 48)/    volatile uint32_t seen = 0; const cci_list_t *n; for (n = table->requests.next; n != \&table->requests; n = n->next) seen++;\n&/')"
unguarded 'each message that ends looks at all others' messages_that_end_together_make_work_for_each_and_not_for_each_pair \
    "$(in_function cci__rel_expire 's/item, status, behind)/item, status, \&rel->runs)/')"

echo "$killed mutants killed, $bad not"
[ "$bad" -eq 0 ] && [ "$killed" -gt 0 ]
