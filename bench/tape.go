// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// tape holds the encoded objects of a kind, made once and played to all sides. It is a
// file that is mapped into memory: however large, it is in no heap, no garbage collector
// scans it, and processes share it.
type tape struct {
	kind    *kind
	data    []byte
	objects []piece
}

// piece is where an object stands in a tape's data.
type piece struct {
	from, to int
	version  int // where its resourceVersion begins, from the beginning of the object
}

// recordHeader is what stands before an object in a tape, in bytes.
const recordHeader = 8

// record encodes the first n objects of a kind into a file in dir.
//
// A record is the object's length and the place of its resourceVersion, each as
// four bytes, big-endian, and the object.
func record(k *kind, n int, dir string) (path string, err error) {
	file, err := os.CreateTemp(dir, k.name+"-*.tape")
	if err != nil {
		return "", fmt.Errorf("recording %s: %w", k.name, err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	defer func() { err = errors.Join(err, out.Flush(), file.Close()) }()
	for i := range n {
		raw, err := k.marshal(k.make(i))
		if err != nil {
			return "", fmt.Errorf("recording %s: %w", k.name, err)
		}
		place := bytes.Index(raw, []byte(version(i)))
		if place < 0 || bytes.Count(raw, []byte(version(i))) != 1 {
			return "", fmt.Errorf("recording %s: object %d does not hold its resourceVersion %s once", k.name, i, version(i))
		}
		header := binary.BigEndian.AppendUint32(nil, uint32(len(raw)))
		header = binary.BigEndian.AppendUint32(header, uint32(place))
		if _, err := out.Write(append(header, raw...)); err != nil {
			return "", fmt.Errorf("recording %s: %w", k.name, err)
		}
	}
	return file.Name(), nil
}

// tapeOf returns a new tape of a kind, which no file holds any more.
func tapeOf(k *kind, n int) (*tape, error) {
	dir, err := os.MkdirTemp("", "setpoint-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := record(k, n, dir)
	if err != nil {
		return nil, err
	}
	return load(k, path)
}

// load maps a recorded tape. It stays mapped until the process ends.
func load(k *kind, path string) (*tape, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", k.name, err)
	}
	defer func() { _ = file.Close() }() // the mapping stays
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", k.name, err)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("loading %s: mapping %s: %w", k.name, path, err)
	}
	t := &tape{kind: k, data: data}
	for at := 0; at < len(data); {
		size, place := binary.BigEndian.Uint32(data[at:]), binary.BigEndian.Uint32(data[at+4:])
		from := at + recordHeader
		at = from + int(size)
		t.objects = append(t.objects, piece{from: from, to: at, version: int(place)})
	}
	return t, nil
}

// size is the length of an object's encoding.
func (t *tape) size(i int) int { return t.objects[i].to - t.objects[i].from }

// append writes the i-th object behind b, at a version.
func (t *tape) append(b []byte, i int, version uint64) []byte {
	p := t.objects[i]
	place := len(b) + p.version
	b = append(b, t.data[p.from:p.to]...)
	strconv.AppendUint(b[place:place], version, 10) // all versions are of one length
	return b
}
