// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package published

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/filelock"
)

// ourContexts are the names that the control plane gives in its kubeconfig.
var ourContexts = regexp.MustCompile(`^setpoint(-\d+)?$`)

// Claim makes sure, before anything is started, that a kubeconfig can be written to a file,
// and that none is there until it is.
func Claim(file string) error {
	others, err := othersIn(file)
	switch {
	case err != nil:
		return fmt.Errorf("%w; name a file that is not there yet", err)
	case len(others) > 0:
		return fmt.Errorf("it also holds %s, which would be lost; name a file that is not there yet", strings.Join(others, ", "))
	}
	if err := RemoveStale(file); err != nil {
		return err
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-")
	if err != nil {
		return fmt.Errorf("%w; name a file in a directory that is there and that you may write to", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// ErrInUse means that another process, which runs, has a kubeconfig under the name.
var ErrInUse = errors.New("it is the kubeconfig of a cluster that runs")

// RemoveStale removes the kubeconfig that an earlier run left behind. The error is [ErrInUse]
// where that run has not ended.
func RemoveStale(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; name a file that is not there yet", err)
	}
	free, err := filelock.TryShared(f)
	if filelock.Unsupported(err) {
		free, err = true, nil // where there are no locks, no process has one
	}
	pid := publisher(f)
	err = errors.Join(err, f.Close())
	switch {
	case err != nil:
		return err
	case !free && pid != "":
		return fmt.Errorf("%w: process %s wrote it; name another file, or stop that process first (kill %s)", ErrInUse, pid, pid)
	case !free:
		return fmt.Errorf("%w, which another process has started; name another file, or stop that process first", ErrInUse)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig of an earlier run: %w", err)
	}
	return nil
}

// File is a kubeconfig that this process has written where the user wants it. The open file
// holds the lock.
type File struct {
	path string
	file *os.File
}

// Write writes a kubeconfig to a path in one step, readable by its owner alone, with the name
// of the program. It replaces nothing: another process may have written there since [Claim]
// looked.
func Write(data []byte, path, program string) (*File, error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-") // 0600
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	_, err = fmt.Fprintf(temporary, "%s# written by %s, process %d\n", data, program, os.Getpid())
	if err == nil {
		if _, err = filelock.Try(temporary); filelock.Unsupported(err) {
			err = nil
		}
	}
	if err == nil {
		err = os.Link(temporary.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = cmp.Or(RemoveStale(path), err) // which says whose it is
	}
	err = errors.Join(err, os.Remove(temporary.Name()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the kubeconfig %s: %w", path, err), temporary.Close())
	}
	return &File{path: path, file: temporary}, nil
}

// Path returns the path, as it was given.
func (f *File) Path() string { return f.path }

// Remove removes the kubeconfig and gives back the lock. A kubeconfig into which a user has
// merged other clusters stays, and so does a file that a user has put in its place.
func (f *File) Remove() error {
	defer func() { _ = f.file.Close() }() // which gives back the lock
	mine, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	there, err := os.Lstat(f.path)
	if err != nil || !os.SameFile(mine, there) {
		return nil
	}
	if others, err := othersIn(f.path); err != nil || len(others) > 0 {
		return err
	}
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}

// writtenBy is the last line of a kubeconfig that [Write] has written.
var writtenBy = regexp.MustCompile(`\n# written by setpoint[a-z -]*, process (\d{1,10})\n$`)

// publisher returns the ID of the process that wrote a kubeconfig, "" where the file does
// not say it: kubectl config drops the line.
func publisher(f io.Reader) string {
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	if m := writtenBy.FindSubmatch(data); m != nil {
		return string(m[1])
	}
	return ""
}

// othersIn lists the clusters and contexts of a kubeconfig that are not ours. A
// file that is not there or is empty, as mktemp makes it, has none.
func othersIn(file string) ([]string, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() == 0:
		return nil, nil
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, errors.New("it holds something else than a kubeconfig") // the cause may quote it
	}
	names := slices.Collect(maps.Keys(config.Clusters))
	names = slices.AppendSeq(names, maps.Keys(config.Contexts))
	names = slices.AppendSeq(names, maps.Keys(config.AuthInfos))
	if len(names) == 0 {
		return nil, errors.New("it holds something else than a kubeconfig")
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), ourContexts.MatchString), nil
}
