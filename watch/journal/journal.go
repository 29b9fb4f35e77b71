// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

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
	// loss of power, commits may be missing.
	NoSync bool
}

// The defaults. The bytes are those of 100,000 events with their fields, without objects.
const (
	DefaultLimit      = 100_000
	DefaultLimitBytes = 256 << 20
	DefaultLockWait   = 2 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.LimitBytes <= 0 {
		o.LimitBytes = DefaultLimitBytes
	}
	if o.LockWait == 0 {
		o.LockWait = DefaultLockWait
	}
	return o
}

// Journal is an open file. It is safe for concurrent use.
type Journal struct {
	path    string
	options Options
	log     *slog.Logger
	key     []byte

	waitingMu sync.Mutex
	waiting   []*request // commits that the next writer takes along

	// writing is held by the goroutine that writes to the file. It guards these, and nobody
	// else changes what mu guards.
	writing   sync.Mutex
	frames    *frames
	frame     []byte // that is being made
	end       int64  // of the frames that are on the disk
	compactAt int64  // the size from which on it is worth the look whether to compact

	mu      sync.RWMutex
	file    *os.File
	state   *state
	closed  bool
	broken  error // why the last write failed: state may hold what is not on the disk
	signals map[string]*signals
	commits uint64
	batches uint64
}

// signals wake who waits for a sink's events, and for room in its outbox.
type signals struct {
	wake chan struct{} // of one
	room chan struct{} // closed when something leaves, and then made anew
}

// Open opens the journal at path, or begins one if there is none. The directory must be
// there and be writable; the file is for its owner only.
//
// A file that is damaged is renamed, and what can be read of it is written to a new one.
// Damage says so, and whoever calls tells the user. A file of another format is left alone,
// and so is one that another process has: that is an error.
func Open(path string, options Options) (*Journal, *Damage, error) {
	options = options.withDefaults()
	if err := ownfile.Link(path); errors.Is(err, ownfile.ErrNotOwn) {
		return nil, nil, fmt.Errorf("the journal: %w; name the file itself", err)
	}
	// A file that is set aside stays beside the real one.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	j := &Journal{path: path, options: options, log: options.Log.With("journal", path), signals: map[string]*signals{}}
	damage, err := j.open()
	if err != nil {
		return nil, nil, j.explain("opening it", err)
	}
	for name, q := range j.state.sinks {
		if len(q.entries) > 0 {
			j.signalsOf(name).wake <- struct{}{}
		}
	}
	return j, damage, nil
}

// open opens the file, and begins it if it is new or empty, as it is when the process that made
// it was killed before it had done so.
func (j *Journal) open() (*Damage, error) {
	f, fresh, err := openLocked(j.path, max(j.options.LockWait, 0))
	if err != nil {
		return nil, err
	}
	damage, err := j.take(f, fresh)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return damage, nil
}

// take takes over an open file, or puts another one in its place.
func (j *Journal) take(f *os.File, fresh bool) (*Damage, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		if tight, err := ownfile.Tighten(f); tight {
			j.log.Warn("others could read the journal, and cannot any more", "mode", mode)
		} else {
			j.log.Warn("others than its owner may read the journal: chmod 600 it", "mode", mode, "error", err)
		}
	}
	if info.Size() == 0 {
		j.begin(f)
		if err := j.rewrite(); err != nil || fresh {
			return nil, err
		}
		return &Damage{Path: j.path, Reason: errEmpty}, nil
	}
	key, err := readHeader(f)
	if errors.Is(err, errHeader) {
		j.begin(f)
		return j.replace(&Damage{Path: j.path, Reason: err})
	}
	if err != nil {
		return nil, err
	}
	j.file, j.key, j.frames = f, key, framesOf(key)
	s, end, damaged, err := load(f, j.frames, info.Size())
	if err != nil {
		return nil, err
	}
	j.state, j.end = s, end
	if damaged != nil {
		return j.replace(&Damage{Path: j.path, Reason: damaged, Kept: true, Events: s.mend()})
	}
	if end < info.Size() {
		j.log.Warn("the last commit of the journal was cut off; what it held is told again", "bytes", info.Size()-end)
	}
	return nil, j.settle()
}

// begin makes a journal with nothing in it, whose file is to be rewritten.
func (j *Journal) begin(f *os.File) {
	j.file, j.key, j.state = f, newKey(), newState()
}

// replace sets the damaged file aside, and writes the state to a new one.
func (j *Journal) replace(d *Damage) (*Damage, error) {
	aside, err := setAside(j.path, j.options.Clock())
	if err != nil {
		return nil, fmt.Errorf("it is damaged (%w), and cannot be set aside: %w", d.Reason, err)
	}
	d.Aside = aside
	return d, j.rewrite()
}

// Close closes the file. Commits on their way end first; every later call returns [ErrClosed].
// Nothing is lost by not calling it.
func (j *Journal) Close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if err := j.file.Close(); err != nil {
		return j.explain("closing it", err)
	}
	return nil
}

// read runs f while nobody changes the state.
func (j *Journal) read(f func() error) error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.closed {
		return ErrClosed
	}
	if j.broken != nil {
		return fmt.Errorf("it could not be read again after it failed: %w", j.broken)
	}
	return f()
}

// Path returns where the file is.
func (j *Journal) Path() string { return j.path }

// Key returns 32 random bytes that were made with the file. Digests are keyed with them, so that
// a digest says nothing without the file.
func (j *Journal) Key() []byte { return slices.Clone(j.key) }

// Stats are figures of a journal.
type Stats struct {
	FileBytes  int64 // size of the file
	Selections int
	Objects    int
	Sinks      int
	Waiting    int   // events, over all sinks
	Bytes      int64 // their size
	Dropped    uint64
	Batches    uint64 // committed since Open
	Commits    uint64 // in so many writes
}

// Stats returns figures of the journal.
func (j *Journal) Stats() Stats {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s := Stats{Selections: len(j.state.selections), Sinks: len(j.state.sinks), Batches: j.batches, Commits: j.commits}
	for _, sel := range j.state.selections {
		s.Objects += len(sel.objects)
	}
	for _, q := range j.state.sinks {
		s.Waiting += len(q.entries)
		s.Bytes += q.bytes
		s.Dropped += q.dropped
	}
	if info, err := os.Stat(j.path); err == nil {
		s.FileBytes = info.Size()
	}
	return s
}

// signalsOf returns the signals of a sink. The caller has locked mu for writing, or has the
// journal for itself.
func (j *Journal) signalsOf(sink string) *signals {
	s := j.signals[sink]
	if s == nil {
		s = &signals{wake: make(chan struct{}, 1), room: make(chan struct{})}
		j.signals[sink] = s
	}
	return s
}
