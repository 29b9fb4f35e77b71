// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
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

	"go.etcd.io/bbolt"
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

// sample is a journal with some of everything: a tree of two levels, small buckets that
// lie within their keys, events of several pages, free pages.
func sample(t testing.TB) []byte {
	t.Helper()
	data, _ := sampleAndStates(t)
	return data
}

// sampleAndStates returns what was in it at the end as well, and before the last commit:
// that is what is there if the newer header is lost.
func sampleAndStates(t testing.TB) (data []byte, states []string) {
	t.Helper()
	j := begin(t, options())
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
	for i := range 10 {
		commit(t, j, func(b *Batch) { b.Forget("pods", key(i*3)); b.Version("pods", fmt.Sprint(6000+i)) })
		states = []string{everything(t, j)}
		if err := j.Ack("hook", uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	states = append(states, everything(t, j))
	closeJournal(t, j)
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	return data, states
}

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
	if err := j.Drop("nodes"); err != nil {
		t.Error(err)
	}
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
	if err := os.WriteFile(path, data, 0o600); err != nil { //nolint:gosec // the path is ours
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
		fmt.Fprintln(&b, s, n, size, oldest, err, j.Dropped(s))
		entries, err := j.Next(s, 0, 1000)
		fmt.Fprintln(&b, entries, err)
	}
	return b.String()
}

func TestTruncatedFileIsSetAside(t *testing.T) {
	data, states := sampleAndStates(t)
	page := os.Getpagesize()
	meta := 0
	for size := 0; size < len(data); size += page {
		for _, n := range []int{size, size + 1 + size%(page-1)} {
			damage := openDamaged(t, data[:n], states...)
			switch {
			case damage == nil:
				meta++ // cut behind the last page in use
			case n == 0 && !errors.Is(damage.Reason, errEmpty):
				t.Errorf("cut at %d: %v", n, damage)
			case n > 0 && damage.Aside == "":
				t.Errorf("cut at %d: not set aside: %v", n, damage)
			}
		}
	}
	t.Logf("%d pages; %d cuts lost nothing", len(data)/page, meta)
	if meta == len(data)/page*2 {
		t.Error("no cut was noticed")
	}
}

// A process that is killed while it makes the file leaves one in which nothing was ever.
func TestAFileThatWasNeverBegunIsBegun(t *testing.T) {
	for _, pages := range []int{1, 2, 3, 4} {
		path := filepath.Join(t.TempDir(), "journal")
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Close(), os.Truncate(path, int64(pages*os.Getpagesize()))); err != nil {
			t.Fatal(err)
		}
		j, damage, err := Open(path, Options{})
		if err != nil || damage == nil || !errors.Is(damage.Reason, errEmpty) || damage.Aside != "" {
			t.Fatalf("%d pages: %v, %v; want that it was empty", pages, damage, err)
		}
		var b Batch
		b.Version("pods", "7")
		_, err = j.Commit(&b)
		if err := errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		j, damage, err = Open(path, Options{})
		if err != nil || damage != nil {
			t.Fatalf("%d pages: opened again: %v, %v", pages, damage, err)
		}
		if version, known := j.Selection("pods"); !known || version != "7" {
			t.Errorf("%d pages: the cursor is at %q, %v", pages, version, known)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
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
		switch damage := openDamaged(t, flipped, states...); {
		case damage == nil:
			counts["harmless"]++
		case damage.Aside != "":
			counts["set aside"]++
		default:
			counts["records taken out"]++
		}
	}
	t.Logf("%d files: %v", *flips, counts)
	if counts["set aside"] == 0 || counts["records taken out"] == 0 {
		t.Error("nothing was noticed")
	}
}

// Headers of pages and elements are where a flip does most harm, and are few of the bytes.
func TestFlippedStructureIsNoticedOrHarmless(t *testing.T) {
	data, states := sampleAndStates(t)
	r := random(t)
	page := os.Getpagesize()
	counts := map[bool]int{}
	for start := 0; start < len(data); start += page {
		for range 3 {
			flipped := bytes.Clone(data)
			flipped[start+r.Intn(16+5*16)] ^= 1 << r.Intn(8)
			counts[openDamaged(t, flipped, states...) != nil]++
		}
	}
	t.Logf("noticed: %v", counts)
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
func TestPagesOfNoiseAreNoticedOrHarmless(t *testing.T) {
	data, states := sampleAndStates(t)
	r := random(t)
	page := os.Getpagesize()
	for start := 0; start < len(data); start += page {
		for _, fill := range []func([]byte){func(b []byte) { r.Read(b) }, func(b []byte) { clear(b) }, func(b []byte) { copy(b, data[2*page:]) }} {
			noise := bytes.Clone(data)
			fill(noise[start : start+page])
			openDamaged(t, noise, states...)
		}
	}
}

func TestOtherFilesAreSetAside(t *testing.T) {
	for name, fill := range map[string]func(tx *bbolt.Tx) error{
		"an empty file of bbolt": func(*bbolt.Tx) error { return nil },
		"another program's": func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("users"))
			if err != nil {
				return err
			}
			return b.Put([]byte("x"), []byte("y"))
		},
		"with buckets where none belong": func(tx *bbolt.Tx) error {
			for _, name := range allBuckets {
				b, err := tx.CreateBucket([]byte(name))
				if err != nil {
					return err
				}
				if _, err := b.CreateBucket([]byte("x")); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "other")
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(fill), db.Close()); err != nil {
				t.Fatal(err)
			}
			data, _ := os.ReadFile(path)
			if damage := openDamaged(t, data); damage == nil || damage.Aside == "" {
				t.Errorf("damage: %v", damage)
			}
		})
	}
}

// change writes into a journal behind its back.
func change(t *testing.T, path string, f func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedRecordsAreTakenOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, sample(t), 0o600); err != nil {
		t.Fatal(err)
	}
	spoil := func(b *bbolt.Bucket, k []byte) error {
		v := bytes.Clone(b.Get(k))
		v[len(v)/2] ^= 0x10
		return b.Put(k, v)
	}
	change(t, path, func(tx *bbolt.Tx) error {
		objects := tx.Bucket([]byte(bucketObjects)).Bucket([]byte("pods"))
		outbox := tx.Bucket([]byte(bucketOutbox)).Bucket([]byte("chat"))
		return errors.Join(
			spoil(objects, appendKey(nil, key(50))),
			// In order, but of another object.
			objects.Put(appendKey(nil, key(51)), objects.Get(appendKey(nil, key(52)))),
			spoil(outbox, seqKey(3)),
			spoil(tx.Bucket([]byte(bucketSelections)), []byte("pods")),
			spoil(tx.Bucket([]byte(bucketSinks)), []byte("chat")),
		)
	})
	j, damage, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	if damage == nil || damage.Aside != "" || damage.Objects != 2 || damage.Events != 1 || damage.Cursors != 1 || damage.Sinks != 1 {
		t.Fatalf("damage: %+v", damage)
	}
	t.Log(damage)
	if v, known := j.Selection("pods"); v != "" || !known {
		t.Errorf("the version of pods: %q, %v: want to compare with a list", v, known)
	}
	if v, known := j.Selection("nodes"); v != "5001" || !known {
		t.Errorf("the version of nodes: %q, %v", v, known)
	}
	if n := len(objects(t, j, "pods")); n != 388 || j.Dropped("chat") != 1 || len(ids(t, j, "chat")) != 19 {
		t.Errorf("%d objects, %d dropped, %d wait", n, j.Dropped("chat"), len(ids(t, j, "chat")))
	}
	commit(t, j, func(b *Batch) { b.Event("chat", "new", nil) })
	entries, err := j.Next("chat", 20, 9)
	if err != nil || len(entries) != 1 || entries[0].Seq != 21 {
		t.Errorf("numbers begin anew: %+v, %v", entries, err)
	}
	use(t, j)
}

func TestRecordsThatAreDamagedMeanwhileAreErrors(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) {
		b.Seen("pods", key(1), seen(1))
		for i := range 3 {
			b.Event("chat", fmt.Sprint(i), nil)
		}
	})
	if err := update(j.db, func(tx *bbolt.Tx) error {
		return errors.Join(
			tx.Bucket([]byte(bucketObjects)).Bucket([]byte("pods")).Put(appendKey(nil, key(1)), []byte("x")),
			tx.Bucket([]byte(bucketOutbox)).Bucket([]byte("chat")).Put(seqKey(2), []byte("x")),
		)
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Get("pods", key(1)); !errors.Is(err, ErrRecord) {
		t.Errorf("get: %v", err)
	}
	seq, failed := j.Objects("pods")
	for k := range seq {
		t.Errorf("object %s", k)
	}
	if err := failed(); !errors.Is(err, ErrRecord) {
		t.Errorf("objects: %v", err)
	}
	if got := ids(t, j, "chat"); len(got) != 2 || j.Dropped("chat") != 1 {
		t.Errorf("waiting %q, dropped %d", got, j.Dropped("chat"))
	}
	if n, _, _, _ := j.Waiting("chat"); n != 2 {
		t.Errorf("%d wait", n)
	}
}

func TestPanicsOfBboltAreErrors(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) { b.Version("pods", "1") })
	err := j.view(func(*bbolt.Tx) error { panic("page 7 already freed") })
	if !errors.Is(err, errPanic) || !strings.Contains(err.Error(), "page 7") {
		t.Errorf("reading: %v", err)
	}
	j.options.Clock = func() time.Time { panic("page 8 already freed") }
	var b Batch
	b.Event("chat", "1", nil)
	if _, err := j.Commit(&b); !errors.Is(err, errPanic) || !strings.Contains(err.Error(), j.path) {
		t.Errorf("writing: %v", err)
	}
	j.options.Clock = time.Now
	if _, err := j.Commit(&b); err != nil { // opened again
		t.Errorf("after that: %v", err)
	}
	if v, _ := j.Selection("pods"); v != "1" || len(ids(t, j, "chat")) != 1 {
		t.Error("it is not as it was")
	}
}

func TestFileThatIsReplacedAfterAFailureIsNotTaken(t *testing.T) {
	j := begin(t, options())
	j.broken = errors.New("some failure")
	if err := os.Remove(j.path); err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.Version("pods", "1")
	for range 2 {
		if _, err := j.Commit(&b); err == nil || !strings.Contains(err.Error(), "another file") || !strings.Contains(err.Error(), "some failure") {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := j.Get("pods", key(1)); err == nil {
		t.Error("it is read")
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
