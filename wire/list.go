// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListMeta is what a list answer says beside its items.
type ListMeta struct {
	Kind            string // "PodList"
	ResourceVersion string // of the list as a whole
	Continue        string // not empty: there are more pages
}

// List reads the body of a list answer as it arrives and calls item with the
// encoded bytes of each object, in order. limit is the largest object in bytes;
// 0 means [DefaultLimit]. The bytes are valid during the call only.
//
// An error of item ends the reading and is returned unchanged. A body that ends early is
// io.ErrUnexpectedEOF; items handed out before it were whole.
func List(body io.Reader, e Encoding, limit int, item func(raw []byte) error) (ListMeta, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	if e == Protobuf {
		return listProtobuf(body, limit, item)
	}
	return listJSON(body, limit, item)
}

func listProtobuf(body io.Reader, limit int, item func([]byte) error) (ListMeta, error) {
	var meta ListMeta
	r := newProtobufReader(body, limit)
	magic, err := r.bytes(uint64(len(protobufMagic)))
	if err != nil {
		return meta, fmt.Errorf("reading list: %w", unexpected(err))
	}
	if string(magic) != string(protobufMagic) {
		return meta, fmt.Errorf("reading list: %w: the protobuf prefix is missing", ErrMalformed)
	}
	whole := false
	for { // the fields of runtime.Unknown
		number, size, err := r.field()
		if errors.Is(err, io.EOF) {
			if !whole {
				return meta, fmt.Errorf("reading list: %w", io.ErrUnexpectedEOF)
			}
			return meta, nil
		}
		if err != nil {
			return meta, fmt.Errorf("reading list: %w", err)
		}
		switch number {
		case 1:
			value, err := r.bytes(size)
			if err != nil {
				return meta, fmt.Errorf("reading list: %w", unexpected(err))
			}
			_, kind, err := typeMeta(value)
			if err != nil {
				return meta, fmt.Errorf("reading list: %w", err)
			}
			meta.Kind = string(kind)
		case 2:
			if whole {
				return meta, fmt.Errorf("reading list: %w: two lists in one body", ErrMalformed)
			}
			whole = true
			if err := listMessage(r, size, &meta, item); err != nil {
				return meta, err
			}
		case 3:
			if size > 0 {
				return meta, fmt.Errorf("reading list: %w: the list has a content encoding of its own", ErrMalformed)
			}
		default:
			if err := r.skip(size); err != nil {
				return meta, fmt.Errorf("reading list: %w", unexpected(err))
			}
		}
	}
}

// listMessage reads the list itself: 1 metadata, 2 items, as all list kinds have it.
func listMessage(r *protobufReader, size uint64, meta *ListMeta, item func([]byte) error) error {
	var m metav1.ListMeta
	for end := r.offset + size; r.offset != end; {
		number, size, err := r.field()
		if err != nil {
			return fmt.Errorf("reading list: %w", unexpected(err))
		}
		if r.offset > end || size > end-r.offset {
			return fmt.Errorf("reading list: %w: field %d is longer than the list", ErrMalformed, number)
		}
		if number != 1 && number != 2 {
			if err := r.skip(size); err != nil {
				return fmt.Errorf("reading list: %w", unexpected(err))
			}
			continue
		}
		value, err := r.bytes(size)
		if err != nil {
			return fmt.Errorf("reading list: %w", unexpected(err))
		}
		if number == 2 {
			if err := item(value); err != nil {
				return err
			}
			continue
		}
		if err := m.Unmarshal(value); err != nil {
			return fmt.Errorf("reading list: %w: metadata: %w", ErrMalformed, err)
		}
		meta.set(&m)
	}
	return nil
}

func (m *ListMeta) set(from *metav1.ListMeta) {
	m.ResourceVersion = from.ResourceVersion
	m.Continue = from.Continue
}

func listJSON(body io.Reader, limit int, item func([]byte) error) (ListMeta, error) {
	var meta ListMeta
	var enough error // of item
	r := newJSONReader(body, limit, 64<<10)
	items := false
	err := r.members(func(name string) error {
		switch name {
		case "kind":
			return r.decode(&meta.Kind)
		case "metadata":
			var m metav1.ListMeta
			err := r.decode(&m)
			meta.set(&m)
			return err
		case "items":
			if items {
				return fmt.Errorf("%w: two lists in one body", ErrMalformed)
			}
			items = true
			if c, err := r.peek(); err == nil && c == 'n' {
				return r.decode(new([]struct{})) // null is an empty list
			}
			return r.elements(func() error {
				value, err := r.value()
				if err != nil {
					return err
				}
				enough = item(value)
				return enough
			})
		default:
			_, err := r.value()
			return err
		}
	})
	if enough != nil {
		return meta, enough
	}
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return meta, fmt.Errorf("reading list: %w", err)
	}
	return meta, nil
}

// unexpected turns the end of a body into io.ErrUnexpectedEOF, where more must follow.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
