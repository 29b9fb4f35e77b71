// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// The kinds of records, which are also the first byte of what their checksums are of.
const (
	ofFormat    byte = 'f'
	ofSelection byte = 'v'
	ofObject    byte = 'o'
	ofSink      byte = 's'
	ofEvent     byte = 'e'
)

// The first byte of every record but those of the format is how it is written.
const (
	plain        byte = 0x10
	binaryUID    byte = 0x01 // object: the UID is 16 bytes, not a text
	numericVers  byte = 0x02 // object: the version is a number, not a text
	checksumSize      = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamagedRecord = errors.New("its checksum is of something else")

// place is where records of a bucket lie, as the beginning of their checksums.
type place uint32

var (
	inFormat     = placeOf(ofFormat, "")
	inSelections = placeOf(ofSelection, "")
	inSinks      = placeOf(ofSink, "")
	zero         = []byte{0}
)

func placeOf(kind byte, bucket string) place {
	where := append(append([]byte{kind}, bucket...), 0)
	return place(crc32.Checksum(where, castagnoli))
}

// seal appends the checksum of a record. It is of where the record lies as well, so that
// one that turns up elsewhere is not taken for one that belongs there.
func seal(record []byte, start int, in place, key []byte) []byte {
	return binary.BigEndian.AppendUint32(record, checksum(record[start:], in, key))
}

func checksum(body []byte, in place, key []byte) uint32 {
	sum := crc32.Update(uint32(in), castagnoli, key)
	sum = crc32.Update(sum, castagnoli, zero)
	return crc32.Update(sum, castagnoli, body)
}

// unseal returns a record without its checksum.
func unseal(record []byte, in place, key []byte) ([]byte, error) {
	n := len(record) - checksumSize
	if n < 1 || binary.BigEndian.Uint32(record[n:]) != checksum(record[:n], in, key) {
		return nil, errDamagedRecord
	}
	return record[:n], nil
}

// appendKey appends what an object is found under: namespace, a zero byte, name. Names
// hold no zero bytes.
func appendKey(b []byte, k object.Key) []byte {
	b = append(b, k.Namespace...)
	b = append(b, 0)
	return append(b, k.Name...)
}

func splitKey(k string) object.Key {
	namespace, name, _ := strings.Cut(k, "\x00")
	return object.Key{Namespace: namespace, Name: name}
}

func isKey(k []byte) bool {
	_, name, ok := bytes.Cut(k, zero)
	return ok && len(name) > 0 && bytes.IndexByte(name, 0) < 0
}

func appendSeen(b []byte, s Seen, in place, key []byte) []byte {
	start := len(b)
	b = append(b, plain)
	if uid, ok := packUID(string(s.UID)); ok {
		b[start] |= binaryUID
		b = append(b, uid[:]...)
	} else {
		b = appendText(b, string(s.UID))
	}
	if n, ok := number(s.Version); ok {
		b[start] |= numericVers
		b = binary.AppendUvarint(b, n)
	} else {
		b = appendText(b, s.Version)
	}
	b = append(b, s.Digest[:]...)
	return seal(b, start, in, key)
}

// seenParts are the parts of the record of an object, which they are part of.
type seenParts struct {
	form         byte
	uid, version []byte
	number       uint64
	digest       []byte
}

func parseSeen(record []byte, in place, key []byte) (p seenParts, err error) {
	b, err := unseal(record, in, key)
	if err != nil {
		return p, err
	}
	r := reader{b: b}
	p.form = r.byte()
	if p.form&binaryUID != 0 {
		p.uid = r.take(16)
	} else {
		p.uid = r.text()
	}
	if p.form&numericVers != 0 {
		p.number = r.uvarint()
	} else {
		p.version = r.text()
	}
	p.digest = r.take(16)
	if r.bad || len(r.b) != 0 || p.form&^(binaryUID|numericVers) != plain {
		return p, errDamagedRecord
	}
	return p, nil
}

// decodeSeen returns what is in the record of an object. Its texts are one allocation.
func decodeSeen(record []byte, in place, key []byte) (s Seen, err error) {
	p, err := parseSeen(record, in, key)
	if err != nil {
		return s, err
	}
	var scratch [64]byte
	text := scratch[:0]
	if p.form&binaryUID != 0 {
		text = appendUID(text, p.uid)
	} else {
		text = append(text, p.uid...)
	}
	n := len(text)
	if p.form&numericVers != 0 {
		text = strconv.AppendUint(text, p.number, 10)
	} else {
		text = append(text, p.version...)
	}
	both := string(text)
	s.UID, s.Version = types.UID(both[:n]), both[n:]
	copy(s.Digest[:], p.digest)
	return s, nil
}

func versionRecord(version, selection string) []byte {
	b := append([]byte{plain}, version...)
	return seal(b, 0, inSelections, []byte(selection))
}

func decodeVersion(record []byte, selection string) (string, error) {
	b, err := unseal(record, inSelections, []byte(selection))
	if err != nil || b[0] != plain {
		return "", errDamagedRecord
	}
	return string(b[1:]), nil
}

func sinkRecord(next, dropped uint64, sink string) []byte {
	b := binary.AppendUvarint([]byte{plain}, next)
	b = binary.AppendUvarint(b, dropped)
	return seal(b, 0, inSinks, []byte(sink))
}

func decodeSink(record []byte, sink string) (next, dropped uint64, err error) {
	b, err := unseal(record, inSinks, []byte(sink))
	if err != nil {
		return 0, 0, err
	}
	r := reader{b: b}
	form := r.byte()
	next, dropped = r.uvarint(), r.uvarint()
	if r.bad || len(r.b) != 0 || form != plain || next == 0 {
		return 0, 0, errDamagedRecord
	}
	return next, dropped, nil
}

func appendEvent(b []byte, at time.Time, id string, data []byte, in place, key []byte) []byte {
	start := len(b)
	b = append(b, plain)
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixNano()))
	b = appendText(b, id)
	b = append(b, data...)
	return seal(b, start, in, key)
}

// decodeEvent returns an entry whose Data is part of record.
func decodeEvent(record []byte, in place, key []byte) (Entry, error) {
	b, err := unseal(record, in, key)
	if err != nil {
		return Entry{}, err
	}
	r := reader{b: b}
	form := r.byte()
	at := r.take(8)
	id := r.text()
	if r.bad || form != plain || len(key) != 8 {
		return Entry{}, errDamagedRecord
	}
	return Entry{
		Seq: binary.BigEndian.Uint64(key), ID: string(id), Data: r.b,
		At: time.Unix(0, int64(binary.BigEndian.Uint64(at))).UTC(),
	}, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader takes parts from the front of b. After a part that is not there it is bad, and
// everything that follows is empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return make([]byte, min(max(n, 0), 16))
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() []byte {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

// number returns a version that is written as numbers are, and so comes back as the same
// text.
func number(s string) (uint64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// packUID returns a UID that is written as API servers write them, and so comes back as
// the same text.
func packUID(s string) (uid [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return uid, false
	}
	var digits [32]byte
	n := 0
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return uid, false
		}
		digits[n] = c
		n++
	}
	_, err := hex.Decode(uid[:], digits[:])
	return uid, err == nil
}

func appendUID(b, uid []byte) []byte {
	for i, part := range [][]byte{uid[:4], uid[4:6], uid[6:8], uid[8:10], uid[10:16]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}
