// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/wire"
)

// watching is a running watch.
type watching struct {
	replay *replay
	frame  func(b []byte, event, apiVersion, kind string, size int, object func([]byte) []byte) []byte
	closed bool // guarded by the replay's mu

	initial bool     // the state comes first
	state   []uint64 // versions of the objects when the watch began
	next    int      // in state
	at      uint64   // the last version that was sent
}

func (r *replay) watch(from string, initial bool) answer {
	if initial && r.listsOnly {
		return refuse(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents: Forbidden: this server offers lists only")
	}
	w := &watching{replay: r, frame: protobufFrame, initial: initial}
	contentType := wire.Protobuf.MediaType() + ";stream=watch"
	if r.tape.kind.encoding == wire.JSON {
		w.frame = jsonFrame
		contentType = wire.JSON.MediaType()
	}
	if initial {
		w.state, w.at = r.state()
	} else {
		var err error
		if w.at, err = strconv.ParseUint(from, 10, 64); err != nil {
			return refuse(http.StatusBadRequest, "BadRequest", "resourceVersion: "+err.Error())
		}
	}
	return answer{code: http.StatusOK, contentType: contentType, body: &body{fill: w.fill, close: w.close}}
}

func (w *watching) close() {
	w.replay.mu.Lock()
	defer w.replay.mu.Unlock()
	w.closed = true
	w.replay.moved.Broadcast()
}

func (w *watching) fill(b []byte) ([]byte, error) {
	if w.initial {
		for ; w.next < len(w.state) && len(b) < chunk; w.next++ {
			b = w.event(b, wire.Added, w.next, w.state[w.next])
		}
		if w.next == len(w.state) {
			w.initial = false
			w.state = nil
			b = w.bookmark(b)
		}
		return b, nil
	}
	to, expired, err := w.wait()
	if err != nil {
		return b, err
	}
	if expired {
		w.close() // what follows the error is the end
		return w.expired(b), nil
	}
	for w.at < to && len(b) < chunk {
		w.at++
		b = w.event(b, wire.Modified, w.replay.changed(w.at), w.at)
	}
	return b, nil
}

// wait blocks until there is something to send, and returns up to which version.
func (w *watching) wait() (to uint64, expired bool, err error) {
	r := w.replay
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case w.closed:
			return 0, false, io.EOF
		case w.at < r.oldest:
			return 0, true, nil
		case w.at < r.current:
			return r.current, false, nil
		case r.endless:
			r.change(100)
		default:
			r.moved.Wait()
		}
	}
}

func (w *watching) event(b []byte, event string, i int, version uint64) []byte {
	t := w.replay.tape
	return w.frame(b, event, t.kind.resource.APIVersion(), t.kind.resource.Kind, t.size(i), func(b []byte) []byte {
		return t.append(b, i, version)
	})
}

// bookmark says that the whole state has been sent.
func (w *watching) bookmark(b []byte) []byte {
	k := w.replay.tape.kind
	meta := metav1.ObjectMeta{
		ResourceVersion: strconv.FormatUint(w.at, 10),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}
	// All kinds have their metadata in field 1.
	raw, err := meta.Marshal()
	raw = field(nil, 1, raw)
	if k.encoding == wire.JSON {
		raw, err = json.Marshal(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": k.resource.APIVersion(), "kind": k.resource.Kind,
			"metadata": map[string]any{
				"resourceVersion": meta.ResourceVersion, "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			},
		}})
	}
	if err != nil {
		panic(err) // strings that fit into memory
	}
	return w.whole(b, wire.Bookmark, k.resource.APIVersion(), k.resource.Kind, raw)
}

func (w *watching) expired(b []byte) []byte {
	s := status(http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d", w.at))
	raw, err := s.Marshal()
	if w.replay.tape.kind.encoding == wire.JSON {
		raw, err = json.Marshal(s)
	}
	if err != nil {
		panic(err) // strings that fit into memory
	}
	return w.whole(b, wire.Error, "v1", "Status", raw)
}

func (w *watching) whole(b []byte, event, apiVersion, kind string, object []byte) []byte {
	return w.frame(b, event, apiVersion, kind, len(object), func(b []byte) []byte { return append(b, object...) })
}

func jsonFrame(b []byte, event, _, _ string, _ int, object func([]byte) []byte) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, event...)
	b = append(b, `","object":`...)
	return append(object(b), "}\n"...)
}

// protobufFrame writes the length of the frame in four bytes, big-endian, and a
// metav1.WatchEvent: 1 the type, 2 a runtime.RawExtension, which has as 1 the
// object in its envelope.
// Source: k8s.io/apimachinery/pkg/util/framer and its serializers.
func protobufFrame(b []byte, event, apiVersion, kind string, size int, object func([]byte) []byte) []byte {
	var scratch [128]byte
	head := envelope(scratch[:0], apiVersion, kind, size)
	whole := len(head) + size + len(envelopeEnd)
	begin := len(b)
	b = append(b, 0, 0, 0, 0)
	b = field(b, 1, event)
	b = append(b, 2<<3|2)
	b = binary.AppendUvarint(b, uint64(1+uvarintSize(whole)+whole))
	b = append(b, 1<<3|2)
	b = binary.AppendUvarint(b, uint64(whole))
	b = append(object(append(b, head...)), envelopeEnd...)
	binary.BigEndian.PutUint32(b[begin:], uint32(len(b)-begin-4))
	return b
}

func uvarintSize(n int) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}
