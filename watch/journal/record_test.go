// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	k := appendKey(nil, key(1))
	for name, s := range map[string]Seen{
		"usual":               seen(1),
		"empty":               {},
		"a UID in capitals":   {UID: "3F0C7A56-9D1E-4B2A-8C3D-0123456789AB", Version: "1"},
		"a UID like one":      {UID: "3f0c7a56-9d1e-4b2a-8c3d-0123456789a-", Version: "1"},
		"zeros in front":      {UID: "x", Version: "007"},
		"zero":                {UID: "x", Version: "0"},
		"a sign":              {UID: "x", Version: "+7"},
		"the largest number":  {UID: "x", Version: "18446744073709551615"},
		"larger than numbers": {UID: "x", Version: "18446744073709551616"},
	} {
		t.Run(name, func(t *testing.T) {
			record := appendSeen([]byte("before"), s, placeOf(ofObject, "pods"), k)[6:]
			got, err := decodeSeen(record, placeOf(ofObject, "pods"), k)
			if err != nil || got != s {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := decodeSeen(record, placeOf(ofObject, "nodes"), k); err == nil {
				t.Error("good in another selection")
			}
			if _, err := decodeSeen(record, placeOf(ofObject, "pods"), appendKey(nil, key(2))); err == nil {
				t.Error("good under another key")
			}
		})
	}
	e, err := decodeEvent(appendEvent(nil, noon, "id", []byte("data"), placeOf(ofEvent, "chat"), seqKey(7)), placeOf(ofEvent, "chat"), seqKey(7))
	if err != nil || e.Seq != 7 || e.ID != "id" || !e.At.Equal(noon) || string(e.Data) != "data" {
		t.Errorf("%+v, %v", e, err)
	}
}

// Whatever is in a record, with a checksum that is right, is read as something that makes
// the same record, or not at all.
func FuzzRecord(f *testing.F) {
	inObject, inEvent := placeOf(ofObject, "x"), placeOf(ofEvent, "x")
	k := appendKey(nil, key(1))
	for _, r := range [][]byte{
		appendSeen(nil, seen(1), inObject, k),
		appendSeen(nil, Seen{UID: "u", Version: "v"}, inObject, k),
		versionRecord("4711", "x"),
		sinkRecord(7, 300, "x"),
		appendEvent(nil, noon, "id", []byte("data"), inEvent, seqKey(7)),
	} {
		f.Add(r[:len(r)-checksumSize])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sealed := func(in place, key []byte) []byte {
			return seal(bytes.Clone(body), 0, in, key)
		}
		if s, err := decodeSeen(sealed(inObject, k), inObject, k); err == nil {
			again, err := decodeSeen(appendSeen(nil, s, inObject, k), inObject, k)
			if err != nil || again != s {
				t.Errorf("%+v became %+v, %v", s, again, err)
			}
		}
		if v, err := decodeVersion(sealed(inSelections, []byte("x")), "x"); err == nil {
			if got := versionRecord(v, "x"); !bytes.Equal(got, sealed(inSelections, []byte("x"))) {
				t.Errorf("%q", v)
			}
		}
		if next, dropped, err := decodeSink(sealed(inSinks, []byte("x")), "x"); err == nil {
			n, d, err := decodeSink(sinkRecord(next, dropped, "x"), "x")
			if n != next || d != dropped || err != nil {
				t.Errorf("%d, %d became %d, %d, %v", next, dropped, n, d, err)
			}
		}
		if e, err := decodeEvent(sealed(inEvent, seqKey(7)), inEvent, seqKey(7)); err == nil {
			again, err := decodeEvent(appendEvent(nil, e.At, e.ID, e.Data, inEvent, seqKey(7)), inEvent, seqKey(7))
			if err != nil || again.ID != e.ID || !again.At.Equal(e.At) || !bytes.Equal(again.Data, e.Data) {
				t.Errorf("%+v became %+v, %v", e, again, err)
			}
		}
		// As they come: without a checksum.
		_, _ = decodeSeen(body, inObject, k)
		_, _ = decodeEvent(body, inEvent, k)
	})
}

// Whatever is in a file, it is opened and used, or set aside, or refused; nothing panics
// or hangs. The checksums of its headers are made right, to get behind them.
func FuzzFile(f *testing.F) {
	o := options()
	j := begin(f, o)
	commit(f, j, func(b *Batch) {
		for i := range 90 {
			b.Seen("pods", key(i), seen(i))
		}
		b.Version("pods", "1")
		b.Event("chat", "1", make([]byte, 5000))
		b.Event("hook", "1", nil)
	})
	commit(f, j, func(b *Batch) { b.Forget("pods", key(1)) })
	_ = j.Close()
	data, err := os.ReadFile(j.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		for at := 0; at+pageHeader+metaSize <= len(data) && at <= maxPage; at = max(minPage, at*2) {
			m := data[at+pageHeader:]
			if binary.NativeEndian.Uint32(m) == metaMagic {
				sum := fnv.New64a()
				sum.Write(m[:metaSize-8])
				binary.NativeEndian.PutUint64(m[metaSize-8:], sum.Sum64())
			}
		}
		openDamaged(t, data)
	})
}

func BenchmarkRecord(b *testing.B) {
	in := placeOf(ofObject, "pods")
	k := appendKey(nil, key(1))
	b.Run("append", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf = appendSeen(buf[:0], seen1, in, k)
		}
		b.ReportMetric(float64(len(buf)), "bytes/record")
	})
	b.Run("decode", func(b *testing.B) {
		r := appendSeen(nil, seen1, in, k)
		for b.Loop() {
			_, _ = decodeSeen(r, in, k)
		}
	})
}

var seen1 = Seen{UID: types.UID("3f0c7a56-9d1e-4b2a-8c3d-0123456789ab"), Version: "184467"}
