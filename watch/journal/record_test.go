// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/object"
)

func TestChangesComeBackAsTheyWere(t *testing.T) {
	var b Batch
	b.Seen("pods", key(1), seen(1))
	b.Seen("nodes", object.Key{Name: "n"}, Seen{})
	b.Version("pods", "007")
	b.Event("chat", "id", []byte("data"))
	b.ack("chat", []uint64{1, 7, 300, 1 << 63})
	var c change
	begin := 0
	for i, check := range []func() bool{
		func() bool { k, s := c.seen(); return string(c.name) == "pods" && k == key(1) && s == seen(1) },
		func() bool { k, s := c.seen(); return k == object.Key{Name: "n"} && s == Seen{} },
		func() bool { return c.verb == setVersion && string(c.version) == "007" },
		nil, // an event is complete with its number
		func() bool { return c.verb == ackEvents && slices.Equal(c.seqs, []uint64{1, 7, 300, 1 << 63}) },
	} {
		err := c.decode(b.encoded[begin:b.ends[i]])
		begin = b.ends[i]
		if check == nil {
			continue
		}
		if err != nil || !check() {
			t.Errorf("change %d became %+v, %v", i, c, err)
		}
	}
}

// A frame is one in its file and at its offset alone: bytes that somebody gets into an event,
// or that an older file left on the disk, are none.
func TestFrameIsOneAtItsPlaceAlone(t *testing.T) {
	f, other := framesOf([]byte("a key")), framesOf([]byte("another key"))
	frame := addTo(f.begin(nil), newChange(nil, dropSelection, "pods"))
	f.seal(frame, 100)
	size := int64(1000)
	if _, err := f.read(bytes.NewReader(frame), 100, size); err != nil {
		t.Error(err)
	}
	if _, err := f.read(bytes.NewReader(frame), 101, size); err == nil {
		t.Error("it is one at another offset")
	}
	if _, err := other.read(bytes.NewReader(frame), 100, size); err == nil {
		t.Error("it is one in another file")
	}
}

// Whatever is in a file, it is opened and used, or set aside, or refused; nothing panics
// or hangs. Checksums are made right, to get behind them.
func FuzzFile(f *testing.F) {
	j := begin(f, options())
	commit(f, j, func(b *Batch) {
		for i := range 5 {
			b.Seen("pods", key(i), seen(i))
		}
		b.Version("pods", "1")
		b.Event("chat", "1", make([]byte, 500))
		b.Event("hook", "1", nil)
	})
	commit(f, j, func(b *Batch) { b.Forget("pods", key(1)) })
	if err := j.Ack("hook", 1); err != nil {
		f.Fatal(err)
	}
	_ = j.Close()
	data, err := os.ReadFile(j.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(fileWithStates(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		if len(data) > headerSize {
			format := plainFormat
			if bytes.HasPrefix(data, []byte(title+"3")) {
				format = statesFormat
			}
			copy(data, newHeader(format, data[headerSize-crc32.Size-keyBytes:headerSize-crc32.Size]))
			frames := framesOf(data[headerSize-crc32.Size-keyBytes : headerSize-crc32.Size])
			for at := headerSize; at+frameHead <= len(data); {
				end := at + frameHead + int(binary.BigEndian.Uint32(data[at:]))
				if end > len(data) {
					break
				}
				frames.seal(data[at:end], int64(at))
				at = end
			}
		}
		openDamaged(t, data)
	})
}

func BenchmarkChange(b *testing.B) {
	b.Run("encode", func(b *testing.B) {
		var batch Batch
		for b.Loop() {
			batch.Reset()
			batch.Seen("pods/v1", podKey(7), podSeen(7, 7))
		}
		b.ReportMetric(float64(len(batch.encoded)), "bytes/change")
	})
	b.Run("decode", func(b *testing.B) {
		var batch Batch
		batch.Seen("pods/v1", podKey(7), podSeen(7, 7))
		var c change
		for b.Loop() {
			_ = c.decode(batch.encoded)
		}
	})
}
