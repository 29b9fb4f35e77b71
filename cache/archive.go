// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unique"
	"unsafe"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// frame is an object on its way from a source into the store. It is valid until the
// source reads the next one.
type frame struct {
	encoding wire.Encoding
	raw      []byte
	head     wire.Head
	fault    error // why the state cannot be used, which is as it was sent then
}

// read takes the bytes of one object.
func (f *frame) read(e wire.Encoding, raw []byte) error {
	f.encoding, f.raw, f.fault = e, raw, nil
	return e.ReadHead(raw, &f.head)
}

// drop releases the bytes.
func (f *frame) drop() {
	f.raw, f.fault = nil, nil
	f.head.Drop()
}

// archive turns frames into entries. It is used by the writer of a store alone.
type archive struct {
	content  *content
	forms    [2]*form // by encoding
	trainers [2]trainer
	families map[digest]*family
	siblings kin
	changing changing
	raw      int // bytes of the bodies of living entries, unpacked
	stored   int // and as they are kept

	patcher *patcher // nil until there is a patch
	patched *entry   // the base that the patcher has

	rest, front, packed, kin, whole, base []byte // reused
}

// digest tells families apart. It is long enough that two of them never meet in one: 128
// bits of a hash with secret seeds.
type digest [2]uint64

var seed2 = maphash.MakeSeed()

func newArchive(c *content) *archive {
	a := &archive{content: c, families: map[digest]*family{}, siblings: kin{}}
	if a.changing.room = c.room; c.room == nil {
		a.changing.room = newRoom(changingMost)
	}
	for e := range a.forms {
		a.forms[e] = &form{content: c, encoding: wire.Encoding(e)}
	}
	return a
}

// entry makes an entry of a frame, packed. It counts as living until drop.
func (a *archive) entry(f *frame) (*entry, error) {
	e, err := a.prepare(f)
	if err != nil {
		return nil, err
	}
	a.write(e, a.forms[f.encoding], a.front, a.rest)
	a.made(e)
	return e, nil
}

// newest makes an entry of a frame that replaces another one of the store, or none. It is not packed if
// there is room for it.
func (a *archive) newest(f *frame, hash uint64, known *entry) (*entry, error) {
	e, err := a.prepare(f)
	if err != nil {
		return nil, err
	}
	if a.changing.takes(known, len(a.rest)) {
		e.form, e.packing = a.forms[f.encoding], unpacked
		e.setText(a.front, a.rest)
		a.changing.add(hash, e)
	} else {
		a.write(e, a.forms[f.encoding], a.front, a.rest)
	}
	a.made(e)
	return e, nil
}

// last makes an entry of the state in which an object was deleted. It is delivered and not kept, so it does not count. It is packed
// only if it is large, or if a handler is behind, for which it may wait for long. To pack all of them was a tenth of the CPU where Pods came and went.
func (a *archive) last(f *frame) (*entry, error) {
	e, err := a.prepare(f)
	if err != nil {
		return nil, err
	}
	if a.changing.behind || len(a.rest) >= largeFrom {
		a.write(e, a.forms[f.encoding], a.front, a.rest)
		a.made(e)
		a.drop(e)
		return e, nil
	}
	e.form, e.packing = a.forms[f.encoding], plain
	e.setText(a.front, a.rest)
	if e.family.members == 0 {
		a.forget(e.family)
	}
	return e, nil
}

// made takes account of a new entry.
func (a *archive) made(e *entry) {
	e.family.members++
	a.raw += len(a.rest)
	a.stored += len(e.body())
	a.trainers[e.form.encoding].made(a, e, len(a.rest))
}

// prepare makes an entry of a frame without its text, whose parts are in front and rest.
func (a *archive) prepare(f *frame) (*entry, error) {
	h := &f.head
	if most := math.MaxUint16; len(h.Name) > most || len(h.UID) > most || len(h.ResourceVersion) > most {
		return nil, fmt.Errorf("name, UID or resourceVersion is longer than %d bytes", most)
	}
	if len(h.Name) == 0 {
		return nil, fmt.Errorf("the object has no name")
	}
	// What cannot be compared cannot be told from what is older.
	version := unsafe.String(unsafe.SliceData(h.ResourceVersion), len(h.ResourceVersion)) //nolint:gosec // no reader keeps it
	if _, err := object.ParseVersion(version); err != nil {
		return nil, err
	}
	family, err := a.family(h)
	if err != nil {
		return nil, err
	}
	a.rest = h.AppendRest(a.rest[:0], a.content.managed)
	e := &entry{family: family}
	a.front = e.appendFront(a.front[:0], h)
	return e, nil
}

// drop says that an entry is not kept: it was replaced, removed, or never stored. The
// last one of a family takes the family with it.
func (a *archive) drop(e *entry) {
	a.raw -= e.rawSize()
	a.stored -= len(e.body())
	if e.packing == unpacked {
		a.changing.drop(e)
	}
	if e.family.members--; e.family.members == 0 {
		a.forget(e.family)
	}
}

// forget forgets a family without members.
func (a *archive) forget(f *family) {
	delete(a.families, f.digest)
	a.siblings.leave(f)
}

// write gives an entry its text: what stands before the body, and the body, packed.
func (a *archive) write(e *entry, form *form, front, body []byte) {
	siblings := a.siblings.of(e.family)
	if patch, to := a.patch(siblings, form, body); to != nil {
		e.form, e.packing, body = to, patched, patch
	} else if packed := a.compress(form, body); packed != nil {
		e.form, e.packing, body = form, compressed, packed
	} else {
		e.form, e.packing = form, plain
	}
	e.setText(front, body)
	if siblings != nil && e.packing != patched {
		siblings.base, siblings.patches = e, nil
	}
}

// setText copies the parts of the text.
func (e *entry) setText(front, body []byte) {
	text := append(append(make([]byte, 0, len(front)+len(body)), front...), body...)
	e.text = unsafe.String(unsafe.SliceData(text), len(text)) //nolint:gosec // no other entry has the bytes
}

// compress returns a body compressed, behind its checksum, or nil: what compression hardly makes
// smaller is quicker to read as it is.
func (a *archive) compress(form *form, body []byte) []byte {
	if need := checksumSize + s2.MaxEncodedLen(len(body)); cap(a.packed) < need {
		a.packed = make([]byte, need)
	}
	packed := a.packed[checksumSize:cap(a.packed)]
	if form.dict != nil {
		packed = form.dict.Encode(packed, body)
	} else {
		packed = s2.Encode(packed, body)
	}
	size := checksumSize + len(packed)
	if size >= len(body)-len(body)/8 {
		return nil
	}
	appendChecksum(a.packed[:0], body)
	return a.packed[:size]
}

// holds reports whether an entry is what a frame has, to the last byte.
func (a *archive) holds(e *entry, f *frame) bool {
	body, err := e.unpack(&a.whole)
	if err != nil || e.form.encoding != f.encoding {
		return false
	}
	family, err := a.family(&f.head)
	a.rest = f.head.AppendRest(a.rest[:0], a.content.managed)
	return err == nil && family == e.family && bytes.Equal(body, a.rest)
}

// rewrite returns an entry as it is in another form. It lives in the place of e.
func (a *archive) rewrite(e *entry, to *form) *entry {
	body, err := e.unpack(&a.whole)
	if err != nil {
		return e // it can be read no better in another form
	}
	n := &entry{
		family: e.family, name: e.name, uid: e.uid, uuid: e.uuid, version: e.version, numbers: e.numbers, times: e.times,
	}
	a.write(n, to, bytesOf(e.text[:len(e.text)-len(e.body())]), body)
	n.decoded.Store(e.decoded.Load())
	n.notes.Store(e.notes.Load())
	a.stored += len(n.body()) - len(e.body())
	if e.packing == unpacked {
		a.changing.drop(e)
		a.trainers[to.encoding].packed(n, len(body))
	}
	return n
}

// family returns the family of an object, made now if it is the first of it.
func (a *archive) family(h *wire.Head) (*family, error) {
	a.kin = h.AppendFamily(append(append(a.kin[:0], h.Namespace...), 0))
	d := digest{maphash.Bytes(seed, a.kin), maphash.Bytes(seed2, a.kin)}
	if f := a.families[d]; f != nil {
		return f, nil
	}
	owners, err := h.Owners()
	if err != nil {
		return nil, err
	}
	for i := range owners {
		owners[i].APIVersion = unique.Make(owners[i].APIVersion).Value()
		owners[i].Kind = unique.Make(owners[i].Kind).Value()
	}
	shareText(owners)
	finalizers, err := h.Finalizers()
	if err != nil {
		return nil, err
	}
	made := &family{
		namespace: unique.Make(string(h.Namespace)).Value(), digest: d,
		labels: object.Labels(h.AppendLabels(nil)), owners: slices.Clip(owners),
	}
	if len(finalizers) > 0 {
		made.finalizers = new(slices.Clip(finalizers))
	}
	made.relate()
	a.families[d] = made
	a.siblings.join(made)
	return made, nil
}

// shareText keeps names and UIDs of owner references in one allocation, which is smaller than two each.
func shareText(owners []metav1.OwnerReference) {
	var text strings.Builder
	size := 0
	for i := range owners {
		size += len(owners[i].Name) + len(owners[i].UID)
	}
	text.Grow(size)
	for i := range owners {
		text.WriteString(owners[i].Name)
		text.WriteString(string(owners[i].UID))
	}
	all := text.String()
	for i := range owners {
		o := &owners[i]
		name, uid := len(o.Name), len(o.UID)
		o.Name, o.UID, all = all[:name], types.UID(all[name:name+uid]), all[name+uid:]
	}
}
