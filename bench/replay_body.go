// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/wire"
)

// chunk is about how much of an answer is made at a time, in bytes.
const chunk = 64 << 10

// body is an answer that is made while it is read. fill adds some of it to what it
// is given, and blocks until there is some; io.EOF is the end.
type body struct {
	fill  func(b []byte) ([]byte, error)
	close func() // may be nil; unblocks fill
	ready []byte
	at    int
}

// Read implements io.Reader. It is called by one goroutine.
func (b *body) Read(p []byte) (int, error) {
	for b.at == len(b.ready) {
		var err error
		b.at = 0
		if b.ready, err = b.fill(b.ready[:0]); err != nil && len(b.ready) == 0 {
			return 0, err
		}
	}
	n := copy(p, b.ready[b.at:])
	b.at += n
	return n, nil
}

// Close may be called by anyone, and more than once.
func (b *body) Close() error {
	if b.close != nil {
		b.close()
	}
	return nil
}

func closeWith(request *http.Request, body io.Closer) (stop func() bool) {
	return context.AfterFunc(request.Context(), func() { _ = body.Close() })
}

func text(code int, e wire.Encoding, content []byte) answer {
	return answer{code: code, contentType: e.MediaType(), body: io.NopCloser(bytes.NewReader(content))}
}

func status(code int, reason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReason(reason), Message: message,
	}
}

func refuse(code int, reason, message string) answer {
	content, err := json.Marshal(status(code, reason, message))
	if err != nil {
		panic(err) // of a type of apimachinery's, without anything that can fail
	}
	return text(code, wire.JSON, content)
}

// list answers as a server whose watch cache is in use: at version 0 and at a
// given one a limit is not heeded.
// Source: k8s.io/apiserver/pkg/storage/cacher/delegator, shouldDelegateList.
func (r *replay) list(version, limit, from string) answer {
	versions, current := r.state()
	first, last := 0, r.n
	if from != "" {
		var err error
		if first, err = strconv.Atoi(from); err != nil {
			return refuse(http.StatusBadRequest, "BadRequest", "continue: "+err.Error())
		}
	}
	if size, err := strconv.Atoi(limit); err == nil && size > 0 && version == "" {
		last = min(r.n, first+size)
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(current, 10)}
	if last < r.n {
		meta.Continue = strconv.Itoa(last)
	}
	write := r.protobufList
	if r.tape.kind.encoding == wire.JSON {
		write = r.jsonList
	}
	head, item, tail := write(meta, first, last)
	next := first
	began := false
	return answer{code: http.StatusOK, contentType: r.tape.kind.encoding.MediaType(), body: &body{fill: func(b []byte) ([]byte, error) {
		if !began {
			began = true
			b = append(b, head...)
		} else if next == last {
			return b, io.EOF
		}
		for ; next < last && len(b) < chunk; next++ {
			b = r.tape.append(item(b, next), next, versions[next])
		}
		if next == last {
			b = append(b, tail...)
		}
		return b, nil
	}}}
}

// jsonList returns what stands before, between and behind the items.
func (r *replay) jsonList(meta metav1.ListMeta, first, _ int) (head []byte, item func([]byte, int) []byte, tail []byte) {
	head = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"continue":%q,"resourceVersion":%q},"items":[`,
		r.tape.kind.resource.Kind+"List", r.tape.kind.resource.APIVersion(), meta.Continue, meta.ResourceVersion)
	return head, func(b []byte, i int) []byte {
		if i > first {
			return append(b, ',')
		}
		return b
	}, []byte("]}\n")
}

// protobufList is as jsonList. A list has its metadata as field 1 and its items as
// fields 2, and stands as field 2 in an envelope that says of which kind it is.
func (r *replay) protobufList(meta metav1.ListMeta, first, last int) (head []byte, item func([]byte, int) []byte, tail []byte) {
	item = func(b []byte, i int) []byte { return binary.AppendUvarint(append(b, 2<<3|2), uint64(r.tape.size(i))) }
	about, err := meta.Marshal()
	if err != nil {
		panic(err) // strings that fit into memory
	}
	about = field(nil, 1, about)
	size := len(about)
	for i := first; i < last; i++ {
		size += len(item(nil, i)) + r.tape.size(i)
	}
	head = envelope(nil, r.tape.kind.resource.APIVersion(), r.tape.kind.resource.Kind+"List", size)
	return append(head, about...), item, envelopeEnd
}

// field writes a field of a protobuf message.
func field[B ~[]byte | ~string](b []byte, number int, content B) []byte {
	b = append(b, byte(number<<3|2))
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

// envelope writes what stands before an object of a size: the prefix, and
// runtime.Unknown with 1 the type and 2 the object. Behind it stands envelopeEnd.
// Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
func envelope(b []byte, apiVersion, kind string, size int) []byte {
	b = append(b, "k8s\x00"...)
	b = field(b, 1, field(field(nil, 1, apiVersion), 2, kind))
	return binary.AppendUvarint(append(b, 2<<3|2), uint64(size))
}

// envelopeEnd is an empty content encoding and an empty content type.
var envelopeEnd = []byte{3<<3 | 2, 0, 4<<3 | 2, 0}
