// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/setpoint-io/setpoint/internal/ownfile"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// fileMode is the mode of a new file: events say much about a cluster.
const fileMode = 0o600

// File describes a sink that writes a file and rotates it.
type File struct {
	// Path is where the file is. Its folder must exist. Files that were rotated lie beside
	// it, with the time in their name.
	Path string `yaml:"path"`
	// Form is text, diff, json, yaml or cloudevents. Default: json.
	Form string `yaml:"form,omitempty"`
	// Objects says whether whole objects are written in the forms that can.
	Objects bool `yaml:"objects,omitempty"`
	// Source is the source of CloudEvents: a URI, or the name of the cluster.
	Source string `yaml:"source,omitempty"`
	// MaxSizeMB is the size, in MiB, at which the file is rotated. Default: 100.
	MaxSizeMB int `yaml:"maxSizeMB,omitempty"`
	// MaxAgeDays is after how many days a rotated file is deleted. Default: never.
	MaxAgeDays int `yaml:"maxAgeDays,omitempty"`
	// MaxBackups is how many rotated files are kept. Default: all.
	MaxBackups int `yaml:"maxBackups,omitempty"`
	// Compress says whether rotated files are compressed with gzip.
	Compress bool `yaml:"compress,omitempty"`
}

// file writes a file and rotates it. Events that Send reports as done are on the disk.
//
// The library has a goroutine for each file, which compresses and deletes old ones. Close does
// not end it, so a sink lives as long as its process.
type file struct {
	*printer

	path   string
	log    *lumberjack.Logger
	toDisk func(*os.File) error
	last   os.FileInfo // the file as it was left, nil before the first Send
}

func (f *File) check(report reporter) {
	switch {
	case f.Path == "":
		report.wrong("path", "is empty; name the file to write")
	case strings.HasSuffix(f.Path, string(filepath.Separator)):
		report.wrong("path", "%q is a folder; name a file in it", f.Path)
	}
	checkForm(report, f.Form)
	notNegative(report, "maxSizeMB", f.MaxSizeMB)
	notNegative(report, "maxAgeDays", f.MaxAgeDays)
	notNegative(report, "maxBackups", f.MaxBackups)
}

func (f *File) reads() []Read { return nil }

func (f *File) batch() int { return 100 }

func (f *File) sink(Deps) (Sink, error) {
	form, err := format.ParseForm(cmp.Or(f.Form, "json"))
	if err != nil {
		return nil, within("form", err)
	}
	torn, err := tryFile(f.Path)
	if err != nil {
		return nil, within("path", err)
	}
	size := cmp.Or(f.MaxSizeMB, 100)
	made := &file{path: f.Path, toDisk: (*os.File).Sync, log: &lumberjack.Logger{
		Filename: f.Path, MaxSize: size, MaxAge: f.MaxAgeDays, MaxBackups: f.MaxBackups, Compress: f.Compress,
	}}
	// One byte is for the line break that a torn line needs.
	made.printer = newPrinter(made.log, size<<20-1, format.Options{Form: form, WithObjects: f.Objects, Source: f.Source})
	made.torn = torn
	// After each Write, since the next one may rotate the file: the library does not sync what it closes.
	made.flushed = made.sync
	return made, nil
}

// checkOwner refuses a file or a link of another user. In a folder that others may write to, the
// owner of a planted file would read about the cluster, and a planted link would have this process
// write to another file of its user. The log opens the file by its name after this check, so a
// user with the right to rename files in the folder can replace it in between.
func checkOwner(path string) error {
	if err := ownfile.Link(path); errors.Is(err, ownfile.ErrNotOwn) {
		return fmt.Errorf("%w; name the file itself", err)
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := ownfile.Open(target, os.O_WRONLY)
	if errors.Is(err, ownfile.ErrNotOwn) {
		return fmt.Errorf("%w; name another file, or chown this one", err)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// tryFile opens the file once, so that a file that cannot be written is an error at the start.
// It reports whether the file ends within a line, as it does if its writer was killed.
func tryFile(path string) (torn bool, err error) {
	// Opening a pipe waits for its reader, and a pipe cannot be rotated.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not a regular file", path)
	}
	if err := checkOwner(path); err != nil {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return false, fmt.Errorf("%w; its folder must be there, and be writable, so that the file can be rotated", err)
	}
	torn, err = endsWithin(f)
	return torn, errors.Join(err, f.Close())
}

func endsWithin(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return last[0] != '\n', nil
}

// Send writes events and waits until the disk has them.
func (f *file) Send(ctx context.Context, events []*event.Event) Result {
	if err := f.reopenIfMoved(); err != nil {
		return Result{Err: err}
	}
	return f.printer.Send(ctx, events)
}

// reopenIfMoved closes a file that another program has moved away, to rotate it: events that are
// written to a file without a name are lost. It checks the file that has the name now as at the
// start.
func (f *file) reopenIfMoved() error {
	if f.last != nil {
		if now, err := os.Stat(f.path); err == nil && os.SameFile(now, f.last) {
			return nil
		}
		_ = f.log.Close() // the next Write opens or makes the file of this name
		f.last, f.torn = nil, false
	}
	return checkOwner(f.path)
}

// sync syncs by another handle, since the library does not show its own.
func (f *file) sync() error {
	handle, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err == nil {
		err = f.toDisk(handle)
		if info, failed := handle.Stat(); failed == nil {
			f.last = info
		}
		err = errors.Join(err, handle.Close())
	}
	if err != nil {
		return fmt.Errorf("making sure that events are on the disk: %w", err)
	}
	return nil
}

// Close closes the file.
func (f *file) Close() error { return f.log.Close() }
