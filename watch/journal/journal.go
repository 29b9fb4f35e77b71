// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
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

// Options of a journal. The zero value is good.
type Options struct {
	Log *slog.Logger // nil: slog.Default

	// States keeps the states of objects, beside their digests. A file with states has a format
	// that older programs refuse. Without it, the states in a file are removed when it is opened.
	States bool

	// Limit is how many events may wait for a sink. Default: 100,000.
	Limit int

	// LockWait is how long Open waits for a process that has the file. Default: 2s. If it is
	// negative, Open does not wait.
	LockWait time.Duration

	clock      func() time.Time // dates events and files that are set aside
	limitBytes int64            // that may wait for a sink
	limitState int64            // bytes of all objects from which on no more states are kept
	noSync     bool             // leaves it to the system when to write to the disk
}

const (
	defaultLimit      = 100_000
	defaultLimitBytes = 256 << 20 // as 100,000 events with their fields, without objects
	defaultLimitState = 1 << 30
	defaultLockWait   = 2 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.clock == nil {
		o.clock = time.Now
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	o.limitBytes = cmp.Or(o.limitBytes, defaultLimitBytes)
	o.limitState = cmp.Or(o.limitState, defaultLimitState)
	o.LockWait = cmp.Or(o.LockWait, defaultLockWait)
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

	// writing is held by the goroutine that writes to the file. It guards the next six fields.
	// Only its holder changes what mu guards, so it reads that without mu.
	writing sync.Mutex
	frames  *frames
	frame   []byte // the buffer of the next frame
	end     int64  // of the frames that are on the disk
	acked   []byte // messages in a frame behind end that the disk may not have yet: the next frame takes its place, with them
	retryAt int64  // after a rewrite that failed: the size at which it is tried again
	full    bool   // there is no room for more states, and the log has it

	mu      sync.RWMutex
	file    *os.File
	state   *state
	closed  bool
	signals map[string]*signals
}

// signals wake the readers of a sink's events, and the writers that wait for room in its outbox.
type signals struct {
	wake chan struct{} // holds one signal
	room chan struct{} // closed when something leaves, and then made anew
}

// Open opens the journal at path, or begins one if there is none. The directory must be
// there and be writable; the file is for its owner only.
//
// A file that is damaged is renamed, and what can be read of it is written to a new one.
// Damage says so, and the caller tells the user. A file of another format is an error, and is
// left alone; so is a file that another process has.
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

// open opens the file. It begins a file that is new, or empty because the process that made it was
// killed.
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
	key, format, err := readHeader(f)
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
		j.log.Warn("the last commit of the journal was cut off; its events are sent again", "bytes", info.Size()-end)
	}
	if format != j.format() {
		return nil, j.rewrite()
	}
	return nil, j.truncate()
}

// begin makes a journal with nothing in it, whose file is to be rewritten.
func (j *Journal) begin(f *os.File) {
	j.file, j.key, j.state = f, newKey(), newState()
}

// replace sets the damaged file aside, and writes the state to a new one.
func (j *Journal) replace(d *Damage) (*Damage, error) {
	aside, err := setAside(j.path, j.options.clock())
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
	var err error
	if len(j.acked) > 0 {
		err = j.sync(j.file)
	}
	if err := errors.Join(err, j.file.Close()); err != nil {
		return j.explain("closing it", err)
	}
	return nil
}

// read runs f with a state that does not change meanwhile.
func (j *Journal) read(f func() error) error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.closed {
		return ErrClosed
	}
	return f()
}

// Key returns 32 random bytes that were made with the file. Digests are keyed with them, so that
// a digest says nothing without the file.
func (j *Journal) Key() []byte { return slices.Clone(j.key) }

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

// roomFor returns a channel that is closed when something leaves the outbox of a sink.
func (j *Journal) roomFor(sink string) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.signalsOf(sink).room
}

// signal wakes the goroutines that wait for a change that is on the disk. The caller has locked
// mu for writing.
func (j *Journal) signal(c *change) {
	if c.verb != addEvent && c.verb != ackEvents {
		return
	}
	s := j.signalsOf(string(c.name))
	if c.verb == ackEvents {
		close(s.room)
		s.room = make(chan struct{})
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
