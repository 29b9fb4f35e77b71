// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/internal/filelock"
)

// WriteEvery is how often a [File] writes. A process that ends without closing its File loses the runs since then. When
// the machine fails, what the operating system has not written yet is lost too, some 30 s on Linux.
const WriteEvery = 2 * time.Second

// ErrFileInUse is the error of [Record.Open] if another process has the files open.
var ErrFileInUse = errors.New("another process keeps its runs in this file")

// File keeps a record in files, so that it survives its process: the file of its path, and one with ".1" at the end that
// has the runs before. Both together are about as large as the record in memory. They have the runs that wrote, failed
// or stated reasons, and no values of fields. docs/record-format.md describes them.
//
// A File writes in the background, and a run never waits for it. Make it with [Record.Open].
type File struct {
	record *Record
	path   string
	log    *slog.Logger
	lock   *os.File

	now     segmentFile
	writer  fileWriter
	limit   int64  // of a file
	numbers uint64 // the files say that numbers up to this one may be in use
	failing bool   // the last write failed, and that was logged

	// These two are guarded by record.mu.
	next    uint64   // the position in the ring from which on entries are not in the files yet
	changed []uint64 // positions of entries that changed since they were written
}

// Open reads the runs of the files of a path into the record, and returns a File that keeps later ones there. If there are
// no files, it makes them, readable for their owner alone. The record must be empty. Numbers of runs go on from the
// files. A damaged part at the end of a file, as a crash leaves it, is left out and logged. A nil log is slog.Default.
//
// The error is [ErrFileInUse] if another process has the files open. A file that is none of a record is an error, and
// stays as it is.
func (r *Record) Open(path string, log *slog.Logger) (*File, error) {
	if log == nil {
		log = slog.Default()
	}
	f := &File{record: r, path: path, log: log, limit: int64(r.bytes / 2)}
	if err := f.open(); err != nil {
		if f.lock != nil {
			_ = f.lock.Close()
		}
		return nil, fmt.Errorf("opening the file %s of runs: %w", path, err)
	}
	return f, nil
}

func (f *File) open() error {
	if f.record.Stats().Runs > 0 {
		return errors.New("the record is not empty")
	}
	if err := f.takeLock(); err != nil {
		return err
	}
	l := loader{record: f.record, at: map[uint64]uint64{}}
	for _, path := range []string{f.earlier(), f.path} {
		s, err := openSegment(path, path == f.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := f.load(&l, s); err != nil {
			return errors.Join(err, s.file.Close())
		}
		if path == f.path {
			f.now = *s
			break
		}
		if err := s.file.Close(); err != nil {
			return err
		}
	}
	f.numbers = l.numbers
	f.record.begin(f, l.numbers)
	return nil
}

// load reads one file.
func (f *File) load(l *loader, s *segmentFile) error {
	size, err := s.file.Seek(0, 2)
	if err != nil {
		return err
	}
	// A file of ours is a block larger than its limit at most.
	content := make([]byte, min(size, f.limit+2*mostBlock))
	if _, err := s.file.ReadAt(content, 0); err != nil {
		return err
	}
	words, end := l.file(s, content)
	f.writer = fileWriter{words: restoredWords(words, f.wordRoom()), committed: len(words)}
	if int64(end) < size {
		f.log.Warn("the end of a file of runs cannot be read, as after a crash; runs in it are lost", "file", s.file.Name(), "bytes", size-int64(end))
	}
	s.size = int64(end)
	if s.file.Name() != f.path || s.size == size {
		return nil
	}
	// A block behind the damage could follow the next one that is written, and would be read with the wrong words.
	return s.file.Truncate(s.size)
}

func (f *File) earlier() string { return f.path + ".1" }

// wordRoom is how many bytes the words of a file may take.
func (f *File) wordRoom() int { return int(f.limit / 16) }

// takeLock takes the lock of the files. It is a file of its own, since the others are renamed.
func (f *File) takeLock() error {
	lock, err := os.OpenFile(f.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: make it first", filepath.Dir(f.path))
	}
	if err != nil {
		return err
	}
	f.lock = lock
	switch locked, err := filelock.Try(lock); {
	case err != nil:
		return fmt.Errorf("locking it: %w", err)
	case !locked:
		return fmt.Errorf("%w; name another one", ErrFileInUse)
	}
	return nil
}

// begin makes a File that of the record.
func (r *Record) begin(f *File, numbers uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs, r.earlier = numbers, numbers
	r.file = f
	f.next = r.kept.next
}

// changed notes that an entry of the kept runs has changed. The record is locked.
func (r *Record) changed(at uint64) {
	if r.file == nil || at >= r.file.next {
		return
	}
	if b := r.kept.at(at); b[atFlags]&flagChanged == 0 {
		b[atFlags] |= flagChanged
		r.file.changed = append(r.file.changed, at)
	}
}

// Run writes what is new every [WriteEvery] until ctx ends, and then once more. It closes the files. A write that fails is
// logged once, and tried again later; nothing is lost if the record still has it then.
func (f *File) Run(ctx context.Context) {
	tick := time.NewTicker(WriteEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			f.try(false)
		}
	}
	f.Close()
}

// Close writes what is new and closes the files. The record goes on without them.
func (f *File) Close() {
	f.try(true)
	f.record.mu.Lock()
	f.record.file = nil
	f.record.mu.Unlock()
	if f.now.file != nil {
		_ = errors.Join(f.now.file.Sync(), f.now.file.Close()) // what could not be written was logged
	}
	_ = f.lock.Close()
}

// try writes, and logs the first failure of several.
func (f *File) try(last bool) {
	err := f.write(last)
	if err != nil && !f.failing {
		f.log.Error("cannot write the file of runs; it goes on without the newest ones until it can", "file", f.path, "error", err)
	}
	if err == nil && f.failing {
		f.log.Info("the file of runs is written again", "file", f.path)
	}
	f.failing = err != nil
}

// aheadNumbers is how many numbers a File reserves, so that a process that begins after a crash uses none of the lost runs.
const aheadNumbers = 100_000

// write writes what is new.
func (f *File) write(last bool) error {
	for {
		entries, changed, words, next := f.fresh()
		if err := f.writeEntries(entries, changed, words); err != nil {
			f.again(changed)
			return err
		}
		f.record.mu.Lock()
		f.next = max(f.next, next)
		done, runs := f.next == f.record.kept.next, f.record.runs
		f.record.mu.Unlock()
		if !done {
			continue
		}
		return f.writeNumbers(runs, last)
	}
}

// writeNumbers writes which numbers are in use: exactly at the end, and with some ahead otherwise.
func (f *File) writeNumbers(runs uint64, last bool) error {
	switch {
	case last && f.numbers != runs:
		f.numbers = runs
	case !last && f.numbers < runs+aheadNumbers/2:
		f.numbers = runs + aheadNumbers
	default:
		return nil
	}
	f.writer.begin()
	return f.writeBlock()
}

// fresh returns copies of the next entries that are not in the files, and of those that have changed. words decode both.
// next is the position after the entries.
func (f *File) fresh() (entries, changed [][]byte, words []string, next uint64) {
	r := f.record
	r.mu.Lock()
	defer r.mu.Unlock()
	ring := r.kept
	from := max(f.next, ring.oldest)
	next = min((from/uint64(ring.size)+1)*uint64(ring.size), ring.next)
	for at := range ring.between(from, next) {
		entries = r.appendEntry(entries, ring, ring.at(at))
	}
	for _, at := range f.changed {
		if ring.has(at) {
			ring.at(at)[atFlags] &^= flagChanged
			changed = r.appendEntry(changed, ring, ring.at(at))
		}
	}
	f.changed = f.changed[:0]
	return entries, changed, r.words.text, next
}

// again notes that changed entries could not be written.
func (f *File) again(changed [][]byte) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	for _, entry := range changed {
		h := header(entry)
		if at, found := entryOf(f.record.kept, h.key(), h.uint64(atNumber)); found {
			f.record.changed(at)
		}
	}
}

// writeEntries writes entries in blocks.
func (f *File) writeEntries(entries, changed [][]byte, words []string) error {
	if len(entries)+len(changed) == 0 {
		return nil
	}
	f.writer.begin()
	for i, entry := range slices.Concat(entries, changed) {
		if i < len(entries) {
			if run, err := decode(entry, words); err == nil {
				f.writer.run(&run)
			}
		} else {
			f.writer.change(header(entry))
		}
		if f.writer.size() >= int(min(fullBlock, f.limit/4)) {
			if err := f.writeBlock(); err != nil {
				return err
			}
			f.writer.begin()
		}
	}
	return f.writeBlock()
}

// writeBlock writes the block of the writer to the end of the file, and turns to a new file when that is full.
func (f *File) writeBlock() error {
	if f.now.file == nil { // the last one could not be made
		if err := f.turn(); err != nil {
			return err
		}
		return errTurned
	}
	size, err := f.now.write(f.writer.block(f.numbers))
	if err != nil {
		f.writer.discard()
		return err
	}
	f.writer.commit()
	if f.now.size = size; size < f.limit {
		return nil
	}
	return f.turn()
}

// errTurned is the error of a block that was made for another file: its words are not in the new one.
var errTurned = errors.New("a new file was begun; the block is made again")

// turn makes the file the earlier one, and begins another.
func (f *File) turn() error {
	if f.now.file != nil {
		_ = errors.Join(f.now.file.Sync(), f.now.file.Close()) // its blocks have checksums
		f.now.file = nil
	}
	if err := os.Rename(f.path, f.earlier()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s, err := openSegment(f.path, true)
	if err != nil {
		return err
	}
	f.now = *s
	f.writer = fileWriter{words: newWords(f.wordRoom())}
	return nil
}
