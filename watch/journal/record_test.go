// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"reflect"
	"testing"

	"github.com/setpoint-io/setpoint/object"
)

func TestChangesComeBackAsTheyWere(t *testing.T) {
	for _, c := range []change{
		{verb: seeObject, name: "pods", key: key(1), seen: seen(1)},
		{verb: seeObject, name: "nodes", key: object.Key{Name: "n"}},
		{verb: forgetObject, name: "pods", key: key(1)},
		{verb: setVersion, name: "pods", seen: Seen{Version: "007"}},
		{verb: dropSelection, name: "pods"},
		{verb: addEvent, name: "chat", seqs: []uint64{1 << 63}, id: "id", at: noon, data: []byte("data")},
		{verb: ackEvents, name: "chat", seqs: []uint64{1, 7, 300}},
		{verb: countDropped, name: "chat", count: 1 << 40},
		{verb: removeSink, name: "chat"},
	} {
		got, err := parseChange(c.append(nil), texts{})
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v became %+v, %v", c, got, err)
		}
	}
}

// A frame is one in its file and at its offset alone: bytes that somebody gets into an event,
// or that an older file left on the disk, are none.
func TestFrameIsOneAtItsPlaceAlone(t *testing.T) {
	f, other := framesOf([]byte("a key")), framesOf([]byte("another key"))
	frame := f.add(f.begin(nil), 100, &change{verb: dropSelection, name: "pods"})
	f.seal(frame, 100)
	size := int64(1000)
	if _, _, err := f.read(bytes.NewReader(frame), 100, size); err != nil {
		t.Error(err)
	}
	if _, _, err := f.read(bytes.NewReader(frame), 101, size); err == nil {
		t.Error("it is one at another offset")
	}
	if _, _, err := other.read(bytes.NewReader(frame), 100, size); err == nil {
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
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		if len(data) > headerSize {
			copy(data, newHeader(data[headerSize-crc32.Size-keyBytes:headerSize-crc32.Size]))
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
	c := change{verb: seeObject, name: "pods/v1", key: podKey(7), seen: podSeen(7, 7)}
	encoded := c.append(nil)
	b.Run("append", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf = c.append(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "bytes/change")
	})
	b.Run("parse", func(b *testing.B) {
		shared := texts{}
		for b.Loop() {
			_, _ = parseChange(encoded, shared)
		}
	})
}
