// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

// Options are what Open needs to know. The zero value is good.
type Options struct {
	Log   *slog.Logger     // nil for none
	Clock func() time.Time // nil for time.Now; it dates events and files set aside

	// Limit is how many events may wait for a sink, LimitBytes how many bytes they may
	// have together. 0 for the defaults.
	Limit      int
	LimitBytes int64

	// LockWait is how long Open waits for a process that has the file. 0 for the default,
	// less to ask once.
	LockWait time.Duration

	// NoSync leaves it to the system when to write to the disk. Only for tests: after a
	// loss of power the file may be damaged.
	NoSync bool
}

// The defaults. The bytes are those of 100,000 events with their fields, without objects.
const (
	DefaultLimit      = 100_000
	DefaultLimitBytes = 256 << 20
	DefaultLockWait   = 2 * time.Second
)

// growBy is in which steps a large file grows, in bytes.
const growBy = 4 << 20

// Journal is an open file. It is safe for concurrent use.
type Journal struct {
	path    string
	options Options
	log     *slog.Logger
	key     []byte

	writing sync.Mutex // who has it writes to the file
	arena   []byte     // of the writer

	waitingMu sync.Mutex
	waiting   []*request // commits that the next writer takes along

	// opened guards db: who reads has it for reading, who opens the file again, for
	// writing. It is never held while a caller's code runs.
	opened sync.RWMutex
	db     *bbolt.DB
	file   *os.File // bbolt's
	closed bool
	broken error // why the last write failed: the file is opened again before the next

	state      sync.RWMutex
	selections map[string]selection
	sinks      map[string]queue
	signals    map[string]*signals
	commits    uint64
	batches    uint64
}

// signals wake who waits for a sink's events, and for room in its outbox.
type signals struct {
	wake chan struct{} // of one
	room chan struct{} // closed when something leaves, and then made anew
}

// Open opens the journal at path, or begins one if there is none. The directory must be
// there; the file is for its owner only.
//
// A file that is damaged is renamed, and a new one is begun in its place; of a file with
// single damaged records, those are taken out. Damage says so, and whoever calls tells
// the user. A file of a newer format is left alone, and so is one that another process
// has: that is an error.
func Open(path string, options Options) (*Journal, *Damage, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Limit <= 0 {
		options.Limit = DefaultLimit
	}
	if options.LimitBytes <= 0 {
		options.LimitBytes = DefaultLimitBytes
	}
	if options.LockWait == 0 {
		options.LockWait = DefaultLockWait
	}
	if err := ownfile.Link(path); errors.Is(err, ownfile.ErrNotOwn) {
		return nil, nil, fmt.Errorf("the journal: %w; name the file itself", err)
	}
	// A file that is set aside stays beside the real one.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	j := &Journal{path: path, options: options, log: options.Log.With("journal", path), signals: map[string]*signals{}}
	damage, err := j.openOrBegin()
	if err != nil {
		return nil, nil, err
	}
	for name, q := range j.sinks {
		if q.waiting > 0 {
			j.signalsOf(name).wake <- struct{}{}
		}
	}
	return j, damage, nil
}

func (j *Journal) openOrBegin() (*Damage, error) {
	var damage *Damage
	for {
		c, empty, err := j.open()
		var structure *structureError
		switch {
		case err == nil && empty && damage == nil:
			return &Damage{Path: j.path, Reason: errEmpty}, nil
		case err == nil && len(c.bad) > 0:
			return c.damage(j.path), nil
		case err == nil:
			return damage, nil
		case !errors.As(err, &structure) && !errors.Is(err, errPanic):
			return nil, err
		case damage != nil:
			return nil, fmt.Errorf("the journal %s: it is damaged as soon as it is made: %w", j.path, err)
		}
		aside, asideErr := setAside(j.path, j.options.Clock())
		if asideErr != nil {
			return nil, fmt.Errorf("the journal %s is damaged (%w), and cannot be set aside: %w", j.path, err, asideErr)
		}
		damage = &Damage{Path: j.path, Aside: aside, Reason: err}
	}
}

// open opens the file, and makes it if it is not there or empty, as it is when who made it
// was killed before he had done so. Empty says that it was there without anything in it.
func (j *Journal) open() (c *contents, empty bool, err error) {
	f, fresh, err := openLocked(j.path, max(j.options.LockWait, 0))
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, false, fmt.Errorf("the journal: %w", err)
	}
	isNew := info.Size() == 0
	if !isNew && neverCommitted(f) {
		if err := f.Truncate(0); err != nil {
			_ = f.Close()
			return nil, false, fmt.Errorf("the journal %s: beginning it anew: %w", j.path, err)
		}
		isNew = true
	}
	if !isNew {
		c, err = survey(f)
	} else {
		c, err = newContents(), nil
	}
	if err != nil {
		_ = f.Close()
		return nil, false, j.explain("opening it", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		if tight, err := ownfile.Tighten(f); tight {
			j.log.Warn("others could read the journal, and cannot any more", "mode", mode)
		} else {
			j.log.Warn("others than its owner may read the journal: chmod 600 it", "mode", mode, "error", err)
		}
	}
	db, err := openDB(f, j.options)
	if err != nil {
		unlockFile(f)
		_ = f.Close()
		return nil, false, j.explain("opening it", err)
	}
	if isNew {
		err = j.begin(db, c)
	} else {
		err = j.repair(db, c)
	}
	if err != nil {
		_ = db.Close()
		return nil, false, j.explain("beginning it", err)
	}
	j.db, j.file, j.key, j.selections, j.sinks = db, f, c.key, c.selections, c.sinks
	return c, isNew && !fresh, nil
}

// openDB hands the file, which is locked and has been looked at, to bbolt. It closes f if
// it fails, or bbolt does when it is closed.
func openDB(f *os.File, options Options) (db *bbolt.DB, err error) {
	err = contain(func() error {
		db, err = bbolt.Open(f.Name(), 0o600, &bbolt.Options{
			Timeout:      max(options.LockWait, 100*time.Millisecond),
			FreelistType: bbolt.FreelistMapType,
			NoSync:       options.NoSync, NoGrowSync: options.NoSync,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil },
		})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, damaged("bbolt refuses it: %v", err)
	case err != nil:
		return nil, err
	}
	db.AllocSize = growBy
	return db, nil
}

// begin writes what every journal has into a new file.
func (j *Journal) begin(db *bbolt.DB, c *contents) error {
	c.version, c.key = format, make([]byte, digestBytes)
	rand.Read(c.key) // never fails
	err := update(db, func(tx *bbolt.Tx) error {
		for _, name := range allBuckets {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		about := tx.Bucket([]byte(bucketFormat))
		for key, value := range map[string][]byte{keyFormat: []byte(strconv.Itoa(format)), keyDigest: c.key} {
			if err := about.Put([]byte(key), seal(slices.Clone(value), 0, inFormat, []byte(key))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.path))
}

// repair takes damaged records out of the file.
func (j *Journal) repair(db *bbolt.DB, c *contents) error {
	if c.headerLost {
		j.log.Warn("one of the two headers of the journal cannot be read: if the last commit is not there, what it held is told again")
	}
	if c.leaked > 0 {
		j.log.Warn("pages of the journal are neither used nor free; nothing is lost by it", "pages", c.leaked)
	}
	if len(c.bad) == 0 {
		return nil
	}
	return update(db, func(tx *bbolt.Tx) error {
		for _, r := range c.bad {
			b := tx.Bucket([]byte(r.bucket))
			if r.sub != "" {
				b = b.Bucket([]byte(r.sub))
			}
			if err := b.Delete([]byte(r.key)); err != nil {
				return err
			}
			if r.bucket == bucketOutbox {
				q := c.sinks[r.sub]
				q.dropped++
				c.sinks[r.sub] = q
			}
		}
		for name, s := range c.selections {
			if !s.known {
				continue
			}
			if err := tx.Bucket([]byte(bucketSelections)).Put([]byte(name), versionRecord(s.version, name)); err != nil {
				return err
			}
		}
		for name, q := range c.sinks {
			if err := tx.Bucket([]byte(bucketSinks)).Put([]byte(name), sinkRecord(q.next, q.dropped, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the file. Commits on their way end first, what is called later answers
// [ErrClosed]. Nothing is lost by not calling it.
func (j *Journal) Close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.opened.Lock()
	defer j.opened.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if err := j.release(); err != nil {
		return j.explain("closing it", err)
	}
	return nil
}

// Path returns where the file is.
func (j *Journal) Path() string { return j.path }

// Key returns 32 random bytes that were made with the file. Digests are keyed with them,
// so that they tell nothing to who sees them without the file.
func (j *Journal) Key() []byte { return slices.Clone(j.key) }

// Stats are figures of a journal.
type Stats struct {
	FileBytes  int64 // size of the file
	FreeBytes  int64 // of these, what is free to be used again
	Selections int
	Objects    int
	Sinks      int
	Waiting    int   // events, over all sinks
	Bytes      int64 // their size
	Dropped    uint64
	Batches    uint64 // committed since Open
	Commits    uint64 // in so many transactions
}

// Stats returns figures of the journal.
func (j *Journal) Stats() Stats {
	j.state.RLock()
	s := Stats{Selections: len(j.selections), Sinks: len(j.sinks), Batches: j.batches, Commits: j.commits}
	for _, sel := range j.selections {
		s.Objects += sel.objects
	}
	for _, q := range j.sinks {
		s.Waiting += q.waiting
		s.Bytes += q.bytes
		s.Dropped += q.dropped
	}
	j.state.RUnlock()
	if info, err := os.Stat(j.path); err == nil {
		s.FileBytes = info.Size()
	}
	j.opened.RLock()
	defer j.opened.RUnlock()
	if j.db != nil && !j.closed {
		free := j.db.Stats()
		s.FreeBytes = int64(free.FreePageN+free.PendingPageN) * int64(j.db.Info().PageSize)
	}
	return s
}
