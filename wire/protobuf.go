// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// chunk is how much memory is taken on a header's word alone. Beyond it memory
// grows with the bytes that arrive, so that a lying header costs its sender.
const chunk = 1 << 20

// protobufReader reads a protobuf message as a stream, field by field.
type protobufReader struct {
	in     *bufio.Reader
	limit  int
	offset uint64 // bytes read so far
	buffer []byte // reused by bytes
}

func newProtobufReader(r io.Reader, limit int) *protobufReader {
	return &protobufReader{in: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// ReadByte makes the reader an io.ByteReader that counts.
func (r *protobufReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.offset++
	}
	return b, err
}

// lastKnown is the last field with a meaning in the messages that are read here:
// runtime.Unknown and the lists. All of them are length-delimited.
const lastKnown = 4

// field reads the next tag and returns the size of its value, which is still to
// be read. Values that are not length-delimited are passed over. io.EOF means that
// there was no further field.
func (r *protobufReader) field() (protowire.Number, uint64, error) {
	for {
		start := r.offset
		tag, err := binary.ReadUvarint(r)
		if err != nil {
			if r.offset == start && errors.Is(err, io.EOF) {
				return 0, 0, io.EOF
			}
			return 0, 0, fmt.Errorf("%w: tag: %w", ErrMalformed, unexpected(err))
		}
		number, typ := protowire.DecodeTag(tag)
		if number < protowire.MinValidNumber {
			return 0, 0, fmt.Errorf("%w: field number %d", ErrMalformed, number)
		}
		if number <= lastKnown && typ != protowire.BytesType {
			return 0, 0, fmt.Errorf("%w: field %d has wire type %d", ErrMalformed, number, typ)
		}
		switch typ {
		case protowire.BytesType:
			size, err := binary.ReadUvarint(r)
			if err != nil {
				return 0, 0, fmt.Errorf("%w: size: %w", ErrMalformed, unexpected(err))
			}
			if size > 1<<62 {
				return 0, 0, fmt.Errorf("%w: field %d claims %d bytes", ErrMalformed, number, size)
			}
			return number, size, nil
		case protowire.VarintType:
			_, err = binary.ReadUvarint(r)
		case protowire.Fixed32Type:
			err = r.skip(4)
		case protowire.Fixed64Type:
			err = r.skip(8)
		default:
			return 0, 0, fmt.Errorf("%w: field %d has wire type %d", ErrMalformed, number, typ)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("%w: field %d: %w", ErrMalformed, number, unexpected(err))
		}
	}
}

// bytes reads n bytes. The result is valid until the next call.
func (r *protobufReader) bytes(n uint64) ([]byte, error) {
	if n > uint64(r.limit) {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, n, r.limit)
	}
	b, err := readFull(r.in, r.buffer, int(n))
	r.buffer = b
	r.offset += uint64(len(b))
	return b, err
}

func (r *protobufReader) skip(n uint64) error {
	copied, err := io.CopyN(io.Discard, r.in, int64(n))
	r.offset += uint64(copied)
	return err
}

// readFull reads n bytes into buffer, which it grows as bytes arrive.
func readFull(in io.Reader, buffer []byte, n int) ([]byte, error) {
	if n <= max(cap(buffer), chunk) {
		if cap(buffer) < n {
			buffer = make([]byte, n)
		}
		buffer = buffer[:n]
		read, err := io.ReadFull(in, buffer)
		return buffer[:read], err
	}
	buffer = buffer[:0]
	for len(buffer) < n {
		step := min(n-len(buffer), max(chunk, len(buffer)))
		start := len(buffer)
		buffer = append(buffer, make([]byte, step)...)
		read, err := io.ReadFull(in, buffer[start:])
		if err != nil {
			return buffer[:start+read], unexpected(err)
		}
	}
	return buffer, nil
}
