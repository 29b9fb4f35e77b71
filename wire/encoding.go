// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"mime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
)

// Encoding is how the objects of a body are written.
type Encoding int

const (
	JSON Encoding = iota
	Protobuf
)

// DefaultLimit is the largest object, in bytes, that is read where no limit is
// given. etcd refuses values above 1.5 MiB by default, so that only an
// aggregated API server can come near it.
const DefaultLimit = 64 << 20

// protobufMagic opens every protobuf body and object of an API server.
// Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
var protobufMagic = []byte("k8s\x00")

// ErrTooLarge is returned where an object is larger than the limit.
var ErrTooLarge = errors.New("object is larger than the limit")

// ErrMalformed is returned where bytes are not what the encoding promises.
var ErrMalformed = errors.New("malformed body")

// MediaType returns the encoding's name in Accept and Content-Type headers.
func (e Encoding) MediaType() string {
	if e == Protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// String returns "protobuf" or "json".
func (e Encoding) String() string {
	if e == Protobuf {
		return "protobuf"
	}
	return "json"
}

// EncodingOf returns the encoding that a Content-Type header names.
func EncodingOf(contentType string) (Encoding, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return 0, fmt.Errorf("reading content type %q: %w", contentType, err)
	}
	switch mediaType {
	case runtime.ContentTypeProtobuf:
		return Protobuf, nil
	case runtime.ContentTypeJSON:
		return JSON, nil
	}
	return 0, fmt.Errorf("content type %q is neither JSON nor Kubernetes protobuf", contentType)
}

// unmarshaler is what generated API types have for protobuf.
type unmarshaler interface {
	Reset()
	Unmarshal([]byte) error
}

// SpeaksProtobuf reports whether objects of o's type can be decoded from
// protobuf.
func SpeaksProtobuf(o runtime.Object) bool {
	_, ok := o.(unmarshaler)
	return ok
}

// Decode reads one object without envelope, as [List] and [WatchReader] hand it
// out, into o. o's former content is lost.
func (e Encoding) Decode(raw []byte, o runtime.Object) error {
	if e == Protobuf {
		m, ok := o.(unmarshaler)
		if !ok {
			return fmt.Errorf("decoding protobuf into %T: the type has no protobuf form", o)
		}
		m.Reset()
		if err := m.Unmarshal(raw); err != nil {
			return fmt.Errorf("decoding protobuf into %T: %w", o, err)
		}
		return nil
	}
	var err error
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object, err = decodeTree(raw)
	} else {
		// Case-sensitive, and whole numbers stay int64: what apimachinery's own
		// decoder does.
		err = json.UnmarshalCaseSensitivePreserveInts(raw, o)
	}
	if err != nil {
		return fmt.Errorf("decoding JSON into %T: %w", o, err)
	}
	return nil
}

// Open takes the envelope off a single object's body. For JSON raw is the body itself.
// apiVersion and kind are those in the body.
func (e Encoding) Open(body []byte) (apiVersion, kind string, raw []byte, err error) {
	if e == Protobuf {
		v, k, raw, err := openProtobuf(body)
		return string(v), string(k), raw, err
	}
	m := walker{scan: new(scanner), data: body}
	m.peek()
	v, k := m.typeMeta()
	m.end()
	if m.err != nil {
		return "", "", nil, m.err
	}
	return string(v), string(k), body, nil
}

// typeMeta walks over an object for its apiVersion and kind. Of several the last is
// meant, as for all decoders.
func (m *walker) typeMeta() (apiVersion, kind []byte) {
	in := walk(m.scan, m.data, m.at)
	for in.next() {
		switch string(in.name) {
		case "apiVersion":
			apiVersion = in.textOrNull()
		case "kind":
			kind = in.textOrNull()
		default:
			in.skip()
		}
	}
	m.follow(&in)
	return apiVersion, kind
}

// Seal puts a protobuf message into the envelope that [Encoding.Open] takes off.
func Seal(apiVersion, kind string, message []byte) ([]byte, error) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	body := make([]byte, len(protobufMagic)+unknown.Size())
	n := copy(body, protobufMagic)
	if _, err := unknown.MarshalTo(body[n:]); err != nil {
		return nil, fmt.Errorf("sealing %s: %w", kind, err)
	}
	return body, nil
}
