// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"mime"

	"google.golang.org/protobuf/encoding/protowire"
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
	var into any = o
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = nil
		into = &u.Object
	}
	// Case-sensitive, and whole numbers stay int64: what apimachinery's own
	// decoder does.
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("decoding JSON into %T: %w", o, err)
	}
	return nil
}

// Open takes the envelope off a single object's body. For JSON raw is the body
// itself. apiVersion and kind are what the body says of itself.
func (e Encoding) Open(body []byte) (apiVersion, kind string, raw []byte, err error) {
	if e == Protobuf {
		return openProtobuf(body)
	}
	var t struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(body, &t); err != nil {
		return "", "", nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return t.APIVersion, t.Kind, body, nil
}

func openProtobuf(body []byte) (apiVersion, kind string, raw []byte, err error) {
	rest, found := bytes.CutPrefix(body, protobufMagic)
	if !found {
		return "", "", nil, fmt.Errorf("%w: the protobuf prefix is missing", ErrMalformed)
	}
	// runtime.Unknown: 1 typeMeta, 2 raw, 3 contentEncoding, 4 contentType.
	err = fields(rest, func(number protowire.Number, value []byte) (err error) {
		switch number {
		case 1:
			apiVersion, kind, err = typeMeta(value)
		case 2:
			raw = value
		case 3:
			if len(value) > 0 {
				err = fmt.Errorf("%w: object is encoded as %q", ErrMalformed, value)
			}
		}
		return err
	})
	return apiVersion, kind, raw, err
}

// typeMeta reads runtime.TypeMeta: 1 apiVersion, 2 kind.
func typeMeta(message []byte) (apiVersion, kind string, err error) {
	err = fields(message, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			apiVersion = string(value)
		case 2:
			kind = string(value)
		}
		return nil
	})
	return apiVersion, kind, err
}

// fields calls each with the length-delimited fields of a message and passes
// over all others.
func fields(message []byte, each func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		message = message[n:]
		if typ == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return fmt.Errorf("%w: field %d: %w", ErrMalformed, number, protowire.ParseError(n))
			}
			if err := each(number, value); err != nil {
				return err
			}
			message = message[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(number, typ, message)
		if n < 0 {
			return fmt.Errorf("%w: field %d: %w", ErrMalformed, number, protowire.ParseError(n))
		}
		message = message[n:]
	}
	return nil
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
