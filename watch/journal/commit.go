// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
)

// groupOps is how many changes are written together; one batch may have more.
const groupOps = 10_000

// request is a batch on its way. What is below done belongs to the writer until it is
// set, and to who asked after that.
type request struct {
	ops      []op
	overflow Overflow

	done    bool
	dropped []string // sinks
	taken   int      // events that were removed with their sink
	err     error
}

// Commit writes a batch, all of it or nothing, and returns when it is on the disk. Batches
// that are committed meanwhile share the next write, in the order in which they came.
//
// Full names the sinks that had no room, if the batch drops events; otherwise that is a
// [FullError]. After another error the file is opened again with the next commit. The
// batch may then be committed again: if it did get into the file after all, its events
// are there twice, with the same IDs.
func (j *Journal) Commit(b *Batch) (full []string, err error) {
	if b.err != nil {
		return nil, b.err
	}
	if len(b.ops) == 0 {
		return nil, nil
	}
	r := &request{ops: b.ops, overflow: b.Overflow}
	j.submit(r)
	return r.dropped, r.err
}

// Drop forgets a selection that is no longer watched, with all of its objects.
func (j *Journal) Drop(selection string) error {
	var b Batch
	b.Drop(selection)
	_, err := j.Commit(&b)
	return err
}

// submit waits until a request is done. Who gets to write takes along what has come in
// the meantime; who finds his request done has nothing to do any more.
func (j *Journal) submit(r *request) {
	j.waitingMu.Lock()
	j.waiting = append(j.waiting, r)
	j.waitingMu.Unlock()

	j.writing.Lock()
	defer j.writing.Unlock()
	for !r.done { // behind more than fits into one group
		j.write(j.group())
	}
}

func (j *Journal) group() []*request {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	n, ops := 0, 0
	for n < len(j.waiting) && (n == 0 || ops+len(j.waiting[n].ops) <= groupOps) {
		ops += len(j.waiting[n].ops)
		n++
	}
	group := slices.Clone(j.waiting[:n])
	j.waiting = slices.Delete(j.waiting, 0, n)
	return group
}

// write writes a group in one transaction, and tells who asked.
func (j *Journal) write(group []*request) {
	s, err := j.transact(group)
	for _, r := range group {
		r.done = true
		if err != nil {
			r.err, r.dropped = err, nil
		}
	}
	if err == nil {
		j.publish(s)
	}
}

// errNothing rolls back a transaction in which nothing was changed.
var errNothing = errors.New("nothing to write")

func (j *Journal) transact(group []*request) (*stage, error) {
	if err := j.reopen(); err != nil {
		return nil, err
	}
	j.opened.RLock()
	defer j.opened.RUnlock()
	if j.closed {
		return nil, ErrClosed
	}
	var s *stage
	err := update(j.db, func(tx *bbolt.Tx) error {
		s = j.newStage(tx)
		for _, r := range group {
			if err := s.apply(r); err != nil {
				return err
			}
		}
		return s.finish()
	})
	if s != nil && cap(s.arena) <= 1<<20 {
		j.arena = s.arena[:0]
	}
	if errors.Is(err, errNothing) {
		return s, nil
	}
	if err != nil {
		j.broken = j.explain("writing to it", err)
		return nil, j.broken
	}
	return s, nil
}

// publish makes what was written visible, and wakes who waits for it.
func (j *Journal) publish(s *stage) {
	j.state.Lock()
	defer j.state.Unlock()
	maps.Copy(j.selections, s.selections)
	for name := range s.dropped {
		delete(j.selections, name)
	}
	maps.Copy(j.sinks, s.sinks)
	for name := range s.removed {
		delete(j.sinks, name)
	}
	if s.changed {
		j.commits++
		j.batches += s.batches
	}
	for name := range s.added {
		select {
		case j.signalsOf(name).wake <- struct{}{}:
		default:
		}
	}
	for name := range s.left {
		close(j.signalsOf(name).room)
		j.signalsOf(name).room = make(chan struct{})
	}
}

// reopen opens the file again after a failed write: what bbolt thinks of it then may not
// be what is in it.
func (j *Journal) reopen() error {
	if j.broken == nil {
		return nil
	}
	j.opened.Lock()
	defer j.opened.Unlock()
	if j.closed {
		return ErrClosed
	}
	if err := j.release(); err != nil {
		j.log.Warn("the journal could not be closed after it failed", "err", err)
	}
	j.state.Lock()
	defer j.state.Unlock()
	key := j.key
	c, _, err := j.open()
	if err == nil && !slices.Equal(key, c.key) {
		// Digests that callers hold are of another key.
		_ = j.release()
		j.key, err = key, errors.New("it is another file than before")
	}
	if err != nil {
		return fmt.Errorf("the journal %s could not be opened again (%w) after a failure; start anew: %w", j.path, err, j.broken)
	}
	j.broken = nil
	if len(c.bad) > 0 {
		j.log.Error("the journal was opened again after a failure, and is damaged", "damage", c.damage(j.path).String())
	}
	j.log.Warn("the journal was opened again after a failure")
	return nil
}

// release gives the file up. A transaction that ended in a panic may hold locks of
// bbolt's, so what is mapped is left to the end of the process then.
func (j *Journal) release() error {
	db, file := j.db, j.file
	j.db, j.file = nil, nil
	if db == nil {
		return nil
	}
	if errors.Is(j.broken, errPanic) {
		unlockFile(file)
		return file.Close()
	}
	return contain(db.Close)
}

// explain says what was done to which file, and what can be done about an error.
func (j *Journal) explain(doing string, err error) error {
	switch {
	case isErrno(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG):
		return fmt.Errorf("the journal %s: %s: %w: make room, it is then tried again", j.path, doing, err)
	case isErrno(err, syscall.EIO) || errors.Is(err, errPanic):
		return fmt.Errorf("the journal %s: %s: %w: the disk may be failing; start anew, and what is damaged is set aside", j.path, doing, err)
	case isErrno(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the journal %s: %s: %w: it must be writable", j.path, doing, err)
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("the journal %s: %w: use the newer program, or another file", j.path, err)
	default:
		return fmt.Errorf("the journal %s: %s: %w", j.path, doing, err)
	}
}

// isErrno reports whether an error is one of the system's. Of some, bbolt passes on the
// text only.
func isErrno(err error, numbers ...syscall.Errno) bool {
	return slices.ContainsFunc(numbers, func(n syscall.Errno) bool {
		return errors.Is(err, n) || strings.Contains(err.Error(), n.Error())
	})
}
