// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seed  = flag.Int64("journal.seed", 0, "seed of random tests; 0 for a new one")
	flips = flag.Int("journal.flips", 150, "how many files with flipped bytes are opened")
)

func random(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = time.Now().UnixNano()
	}
	t.Logf("-journal.seed=%d", s)
	return rand.New(rand.NewSource(s))
}

// sampleAndStates is a journal with some of everything: long commits and short ones, events of
// several pages, and much that later commits have made obsolete. It returns what was in it after
// each commit as well.
func sampleAndStates(t testing.TB) (data []byte, states []string) {
	t.Helper()
	j := begin(t, options())
	states = append(states, everything(t, j))
	commit(t, j, func(b *Batch) {
		for i := range 400 {
			b.Seen("pods", key(i), seen(i))
		}
		b.Seen("nodes", key(1), seen(1))
		b.Version("pods", "5000")
		b.Version("nodes", "5001")
		for i := range 20 {
			b.Event("chat", fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 100))
			b.Event("hook", fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, i*500))
		}
	})
	states = append(states, everything(t, j))
	for i := range 10 {
		commit(t, j, func(b *Batch) { b.Forget("pods", key(i*3)); b.Version("pods", fmt.Sprint(6000+i)) })
		states = append(states, everything(t, j))
		if err := j.Ack("hook", uint64(i+1)); err != nil {
			t.Fatal(err)
		}
		states = append(states, everything(t, j))
	}
	closeJournal(t, j)
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	return data, states
}

// lastTwo are the states that a file is in whose last commit may be damaged.
func lastTwo(states []string) []string { return states[len(states)-2:] }

// use does everything with a journal, whatever is in it, and closes it. The file is then
// opened once more, and must be in order.
func use(t testing.TB, j *Journal) {
	t.Helper()
	for _, s := range j.Selections() {
		n := len(objects(t, j, s))
		if n > 400 {
			t.Errorf("%d objects in %q", n, s)
		}
	}
	for _, s := range j.Sinks() {
		n, _, _, err := j.Waiting(s)
		if got := len(ids(t, j, s)); err != nil || got != n {
			t.Errorf("sink %q: %d events, %d wait, %v", s, got, n, err)
		}
		var all []uint64
		entries, err := j.Next(s, 0, 1000)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			all = append(all, e.Seq)
		}
		if err := j.Ack(s, all...); err != nil {
			t.Error(err)
		}
	}
	commit(t, j, func(b *Batch) {
		for i := range 300 {
			b.Seen("pods", key(i*2), seen(i+7))
		}
		b.Event("chat", "last", make([]byte, 10_000))
	})
	commit(t, j, func(b *Batch) { b.Drop("nodes") })
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	j, damage, err := Open(j.path, options())
	if err != nil || damage != nil {
		t.Fatalf("opened once more: %v, %v", damage, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// openDamaged opens a file with these bytes, and uses it. What was set aside must be the
// bytes.
func openDamaged(t testing.TB, data []byte, undamaged ...string) *Damage {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	j, damage, err := Open(path, options())
	if errors.Is(err, ErrNewer) {
		if after, _ := os.ReadFile(path); !bytes.Equal(after, data) {
			t.Error("a file that was refused is changed")
		}
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if damage != nil {
		if damage.Reason == nil || !strings.Contains(damage.String(), path) {
			t.Errorf("damage without a reason: %v", damage)
		}
		if damage.Aside != "" {
			if aside, err := os.ReadFile(damage.Aside); err != nil || !bytes.Equal(aside, data) {
				t.Errorf("what was set aside is not the file: %v", err)
			}
			if filepath.Base(damage.Aside) != "journal.damaged-20260301T120000Z" {
				t.Errorf("set aside as %q", damage.Aside)
			}
		}
	}
	if damage == nil && len(undamaged) > 0 && !slices.Contains(undamaged, everything(t, j)) {
		t.Errorf("no damage is said, and it is not as it was:\n%s\nwant\n%s", everything(t, j), undamaged[0])
	}
	use(t, j)
	return damage
}

// everything is all that can be asked of a journal.
func everything(t testing.TB, j *Journal) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%x\n", j.Key())
	for _, s := range j.Selections() {
		version, known := j.Selection(s)
		fmt.Fprintln(&b, s, version, known)
		seq, failed := j.Objects(s)
		for k, v := range seq {
			fmt.Fprintln(&b, k, v)
		}
		if err := failed(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range j.Sinks() {
		n, size, oldest, err := j.Waiting(s)
		fmt.Fprintln(&b, s, n, size, oldest, err)
		entries, err := j.Next(s, 0, 1000)
		fmt.Fprintln(&b, entries, err)
	}
	return b.String()
}

// A file that lacks its end is as it was before the commits that it lacks: what they held is
// told again.
func TestTruncatedFileIsAsItWasBefore(t *testing.T) {
	data, states := sampleAndStates(t)
	r := random(t)
	whole := 0
	for i := range 100 {
		n := r.Intn(len(data))
		if i == 0 {
			n = 0
		}
		switch damage := openDamaged(t, data[:n], states...); {
		case damage == nil:
			whole++
		case n == 0 && !errors.Is(damage.Reason, errEmpty):
			t.Errorf("an empty file: %v", damage)
		case n >= headerSize || n > 0 && damage.Aside == "":
			t.Errorf("cut at %d: %v", n, damage)
		}
	}
	if whole == 0 {
		t.Error("nothing was whole")
	}
}

func TestFlippedBytesAreNoticedOrHarmless(t *testing.T) {
	data, states := sampleAndStates(t)
	r := random(t)
	counts := map[string]int{}
	for range *flips {
		flipped := bytes.Clone(data)
		at := r.Intn(len(data))
		flipped[at] ^= byte(1 + r.Intn(255))
		if r.Intn(4) == 0 {
			flipped[r.Intn(len(data))] ^= byte(1 + r.Intn(255))
		}
		switch damage := openDamaged(t, flipped, lastTwo(states)...); {
		case damage == nil:
			counts["in the last commit"]++
		case damage.Kept:
			counts["kept in part"]++
		default:
			counts["begun anew"]++
		}
	}
	t.Logf("%d files: %v", *flips, counts)
	if counts["kept in part"] == 0 {
		t.Error("nothing was noticed")
	}
}

// The heads of frames are where a flip does most harm, and are few of the bytes.
func TestFlippedHeadsAreNoticedOrHarmless(t *testing.T) {
	data, states := sampleAndStates(t)
	r := random(t)
	for at := headerSize; at < len(data); at += frameHead + int(binary.BigEndian.Uint32(data[at:])) {
		for range 3 {
			flipped := bytes.Clone(data)
			flipped[at+r.Intn(frameHead)] ^= 1 << r.Intn(8)
			openDamaged(t, flipped, lastTwo(states)...)
		}
	}
	for at := range headerSize {
		flipped := bytes.Clone(data)
		flipped[at] ^= 1 << r.Intn(8)
		if damage := openDamaged(t, flipped); damage != nil && damage.Kept {
			t.Errorf("byte %d of the header is another, and its key was used", at)
		}
	}
}

func TestRandomBytesAreSetAside(t *testing.T) {
	r := random(t)
	for range 50 {
		data := make([]byte, 1+r.Intn(100_000))
		r.Read(data)
		if damage := openDamaged(t, data); damage == nil || damage.Aside == "" {
			t.Errorf("%d random bytes: %v", len(data), damage)
		}
	}
}

// A page of noise in the middle, as a disk returns it.
func TestPagesOfNoiseAreNoticed(t *testing.T) {
	data, states := sampleAndStates(t)
	r := random(t)
	const page = 4096
	for start := 0; start+page < len(data); start += page {
		for _, fill := range []func([]byte){func(b []byte) { r.Read(b) }, func(b []byte) { clear(b) }, func(b []byte) { copy(b, data[headerSize:]) }} {
			noise := bytes.Clone(data)
			fill(noise[start : start+page])
			openDamaged(t, noise, lastTwo(states)...)
		}
	}
}

// frameAt returns the offset and the end of a frame by its number.
func frameAt(data []byte, n int) (start, end int) {
	end = headerSize
	for range n + 1 {
		start = end
		end += frameHead + int(binary.BigEndian.Uint32(data[end:]))
	}
	return start, end
}

// What a damaged commit held is compared with the cluster, or counted; everything else is there.
func TestDamagedCommitIsLeftOut(t *testing.T) {
	j := begin(t, options())
	for i := range 4 { // the second is damaged, the third acknowledges an event of it
		commit(t, j, func(b *Batch) {
			b.Seen("pods", key(i), seen(i))
			b.Version("pods", fmt.Sprint(100+i))
			b.Event("chat", fmt.Sprint(i, "a"), nil)
			b.Event("chat", fmt.Sprint(i, "b"), nil)
		})
		if i == 1 {
			if err := j.Ack("chat", 3); err != nil {
				t.Fatal(err)
			}
		}
	}
	digests := j.Key()
	closeJournal(t, j)
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	start, end := frameAt(data, 1)
	data[(start+end)/2] ^= 0x10
	if err := os.WriteFile(j.path, data, 0o600); err != nil { //nolint:gosec // the path is ours
		t.Fatal(err)
	}
	j, damage, err := Open(j.path, options())
	if err != nil {
		t.Fatal(err)
	}
	if damage == nil || !damage.Kept || damage.Events != 1 || damage.Aside == "" || !strings.Contains(damage.String(), fmt.Sprint("at byte ", start)) {
		t.Fatalf("damage: %v, want that of the frame at %d", damage, start)
	}
	t.Log(damage)
	if aside, err := os.ReadFile(damage.Aside); err != nil || !bytes.Equal(aside, data) {
		t.Errorf("what was set aside is not the file: %v", err)
	}
	if v, known := j.Selection("pods"); v != "" || !known {
		t.Errorf("the version of pods: %q, %v: want to compare with a list", v, known)
	}
	if got := objects(t, j, "pods"); len(got) != 3 || got[key(1)] != (Seen{}) {
		t.Errorf("objects %v", got)
	}
	if got := ids(t, j, "chat"); !slices.Equal(got, []string{"0a", "0b", "2a", "2b", "3a", "3b"}) {
		t.Errorf("waiting %q", got)
	}
	if !bytes.Equal(j.Key(), digests) {
		t.Error("the key is another")
	}
	use(t, j)
}

func TestEventThatIsDamagedMeanwhileIsDropped(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) {
		for i := range 3 {
			b.Event("chat", fmt.Sprint(i), nil)
		}
	})
	e := j.state.sinks["chat"].entries[1]
	if _, err := j.file.WriteAt([]byte{0xff}, e.section.at); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, j, "chat"); !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("waiting %q", got)
	}
	if n, _, _, _ := j.Waiting("chat"); n != 2 {
		t.Errorf("%d wait", n)
	}
}

// What is missing of the objects must not be taken for new: it is an error, and the next start
// compares.
func TestObjectThatIsDamagedMeanwhileIsAnError(t *testing.T) {
	j := begin(t, options())
	for i := range 3 {
		commit(t, j, func(b *Batch) { b.Seen("pods", key(i), seen(i)); b.Version("pods", fmt.Sprint(i)) })
	}
	k := key(1)
	at := j.state.selections["pods"].objects[j.state.id([]byte(k.Namespace), []byte(k.Name))].at
	if _, err := j.file.WriteAt([]byte{0xff}, at); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Get("pods", k); !errors.Is(err, errFrame) || !strings.Contains(err.Error(), j.path) || !strings.Contains(err.Error(), "start the watch again") {
		t.Errorf("the object is read with %v", err)
	}
	seq, failed := j.Objects("pods")
	for range seq { // the error counts
	}
	if err := failed(); !errors.Is(err, errFrame) {
		t.Errorf("all objects are read with %v", err)
	}
	closeJournal(t, j)
	j, damage, err := Open(j.path, options())
	if err != nil || damage == nil || !damage.Kept {
		t.Fatalf("opened again: %v, %v", damage, err)
	}
	defer closeJournal(t, j)
	if v, known := j.Selection("pods"); v != "" || !known || len(objects(t, j, "pods")) != 2 {
		t.Errorf("the version is %q, known %v, of %d objects", v, known, len(objects(t, j, "pods")))
	}
}

// A file of format 1 was one of bbolt.
func TestOldFormatIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	old := make([]byte, 16<<10)
	binary.NativeEndian.PutUint32(old[16:], 0xED0CDAED)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(path, options())
	if !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move this one away") {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, old) {
		t.Error("the file was changed")
	}
}

// After a write that failed, the state is that of the disk, and the next commit tries again.
func TestFailedWriteChangesNothing(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) { b.Version("pods", "1"); b.Event("chat", "1", nil) })
	file := j.file
	broken, err := os.Open(j.path) // cannot be written to
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	j.file = broken
	var b Batch
	b.Version("pods", "2")
	b.Event("chat", "2", nil)
	for range 2 {
		if err := j.Commit(&b); err == nil || !strings.Contains(err.Error(), j.path) {
			t.Errorf("got %v", err)
		}
	}
	if v, _ := j.Selection("pods"); v != "1" || !slices.Equal(ids(t, j, "chat"), []string{"1"}) {
		t.Errorf("a state is read that is not on the disk: version %s, events %q", v, ids(t, j, "chat"))
	}
	j.file = file
	commit(t, j, func(b *Batch) { b.Event("chat", "3", nil) })
	if v, _ := j.Selection("pods"); v != "1" || !slices.Equal(ids(t, j, "chat"), []string{"1", "3"}) {
		t.Errorf("version %s, events %q", v, ids(t, j, "chat"))
	}
}

// What is obsolete is left out of the file from time to time.
func TestFileIsCompacted(t *testing.T) {
	j := begin(t, options())
	data := make([]byte, 100<<10)
	for i := range 200 {
		commit(t, j, func(b *Batch) {
			b.Event("chat", fmt.Sprint(i), data)
			b.Seen("pods", key(i%10), seen(i))
			b.Version("pods", fmt.Sprint(i))
		})
		if i >= 3 {
			if err := j.Ack("chat", uint64(i-2)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if info, err := os.Stat(j.path); err != nil || info.Size() > 6<<20 || len(objects(t, j, "pods")) != 10 {
		t.Errorf("%d bytes, %v, %d objects", info.Size(), err, len(objects(t, j, "pods")))
	}
	before := everything(t, j)
	closeJournal(t, j)
	if now := everything(t, reopen(t, j.path, options())); now != before {
		t.Errorf("it is not as it was:\n%s\nwant\n%s", now, before)
	}
	if _, err := os.Stat(j.path + ".new"); err == nil {
		t.Error("there is a file .new")
	}
}
