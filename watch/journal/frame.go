// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// The file is a header and frames, as docs/watch-journal.md describes them. A commit is one
// frame: it is there with all of its changes, or it is not.
const (
	title      = "setpoint-watch journal "
	keyBytes   = 32
	headerSize = len(title) + len("2\n") + keyBytes + crc32.Size
	// frameHead is in front of each frame: the length of its body, the checksum of that
	// length, and the checksum of both.
	frameHead = 3 * 4
)

// The formats. Programs that know only the first one would take a state for damage.
const (
	plainFormat  = 2
	statesFormat = 3 // as plainFormat, with states of objects and dictionaries
)

// format returns the format of the files that the journal writes.
func (j *Journal) format() int {
	if j.options.States {
		return statesFormat
	}
	return plainFormat
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newHeader returns the header of a new file of a format, with a key of its own.
func newHeader(format int, key []byte) []byte {
	h := append([]byte(title+strconv.Itoa(format)+"\n"), key...)
	return binary.BigEndian.AppendUint32(h, checksum(h))
}

func newKey() []byte {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	return key
}

// bboltMagic is what a journal of format 1, a file of bbolt, has behind its first 16 bytes, in
// the byte order of its machine.
// Source: go.etcd.io/bbolt/internal/common, Magic and Meta.
const bboltMagic = 0xED0CDAED

var errHeader = errors.New("it does not begin as a journal does")

// readHeader returns the key and the format of a file.
func readHeader(r io.ReaderAt) (key []byte, format int, err error) {
	h := make([]byte, headerSize)
	n, err := r.ReadAt(h, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	h = h[:n]
	if n >= 20 && binary.NativeEndian.Uint32(h[16:]) == bboltMagic {
		return nil, 0, ErrOlder
	}
	rest, ok := bytes.CutPrefix(h, []byte(title))
	if number, _, whole := bytes.Cut(rest, []byte("\n")); ok && whole {
		v, err := strconv.ParseUint(string(number), 10, 16)
		if err == nil && v > statesFormat {
			return nil, 0, fmt.Errorf("%w: its format is %d, and this program reads %d", ErrNewer, v, statesFormat)
		}
		format = int(v)
	}
	key = h[min(n, headerSize-crc32.Size-keyBytes):min(n, headerSize-crc32.Size)]
	if format < plainFormat || !bytes.Equal(h, newHeader(format, key)) {
		return nil, 0, errHeader
	}
	return key, format, nil
}

// frames reads and makes the frames of a file. Their checksums begin with the file's key and
// their offset: a frame of another file, or in another place, is none. The key is secret, so no
// user of the cluster can put bytes into an object that pass for a frame.
type frames struct {
	seed uint32
	body []byte // of the frame that was read last
}

func framesOf(key []byte) *frames { return &frames{seed: checksum(key)} }

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// begin returns an empty frame in b, to which messages can be added.
func (f *frames) begin(b []byte) []byte { return append(b[:0], make([]byte, frameHead)...) }

// addTo adds the message of a change to a frame.
func addTo(frame, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(frame, fieldChange, protowire.BytesType), message)
}

// seal writes the head of a frame that will be written at an offset.
func (f *frames) seal(frame []byte, at int64) {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-frameHead))
	sum := f.headSum(frame, at)
	binary.BigEndian.PutUint32(frame[4:], sum)
	binary.BigEndian.PutUint32(frame[8:], crc32.Update(sum, castagnoli, frame[frameHead:]))
}

func (f *frames) headSum(head []byte, at int64) uint32 {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], uint64(at))
	copy(b[8:], head[:4])
	return crc32.Update(f.seed, castagnoli, b[:])
}

// isHead reports whether these bytes, which are at an offset, are the head of a frame that ends
// within the file.
func (f *frames) isHead(head []byte, at, size int64) bool {
	return binary.BigEndian.Uint32(head[4:]) == f.headSum(head, at) && int64(binary.BigEndian.Uint32(head)) <= size-at-frameHead
}

// errFrame says that there is no frame that is as it was written.
var errFrame = errors.New("its checksum is of something else")

// read reads the frame at an offset from r, which is there, and returns its body. The body is
// valid until the next call.
func (f *frames) read(r io.Reader, at, size int64) (body []byte, err error) {
	var head [frameHead]byte
	if size-at < frameHead {
		return nil, errFrame
	}
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if !f.isHead(head[:], at, size) {
		return nil, errFrame
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	f.body = slices.Grow(f.body[:0], n)[:n]
	if _, err := io.ReadFull(r, f.body); err != nil {
		return nil, err
	}
	if crc32.Update(f.headSum(head[:], at), castagnoli, f.body) != binary.BigEndian.Uint32(head[8:]) {
		return nil, errFrame
	}
	return f.body, nil
}

// next returns the offset of the next head of a frame, from an offset on, or the size of the file.
func (f *frames) next(r io.ReaderAt, at, size int64) (int64, error) {
	b := make([]byte, 1<<20)
	for ; size-at >= frameHead; at += int64(len(b)) - frameHead + 1 {
		b = b[:min(int64(cap(b)), size-at)]
		if _, err := r.ReadAt(b, at); err != nil {
			return 0, err
		}
		for i := 0; i+frameHead <= len(b); i++ {
			if f.isHead(b[i:], at+int64(i), size) {
				return at + int64(i), nil
			}
		}
	}
	return size, nil
}
