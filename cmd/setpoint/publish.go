// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/filelock"
)

// The file that --kubeconfig of "setpoint up" names exists for as long as the
// cluster can be used, and whoever waits for it may rely on that. One that an
// earlier run left behind is therefore removed at the start. But it may just as
// well be the file with all the clusters that somebody has: that one is nobody's
// to replace. And it may be the file of another "setpoint up" that still runs: the
// process holds a lock on it, which ends with the process, however that ends.

// ourContexts are the names that the control plane gives in its kubeconfig.
var ourContexts = regexp.MustCompile(`^setpoint(-\d+)?$`)

// claim makes sure, before anything is started, that a kubeconfig can be written
// to file, and that none is there until it is.
func claim(file string) error {
	others, err := othersIn(file)
	switch {
	case err != nil:
		return fmt.Errorf("--kubeconfig %s: %w; name a file that is not there yet", file, err)
	case len(others) > 0:
		return fmt.Errorf("--kubeconfig %s: it also holds %s, which would be lost; name a file that is not there yet", file, strings.Join(others, ", "))
	}
	if err := removeStale(file); err != nil {
		return fmt.Errorf("--kubeconfig %s: %w", file, err)
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-")
	if err != nil {
		return fmt.Errorf("--kubeconfig %s: %w; name a file in a directory that is there and that you may write to", file, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// errPublished means that another process has a kubeconfig under the name.
var errPublished = errors.New("it is the kubeconfig of a cluster that runs")

// removeStale removes the kubeconfig that an earlier run left behind. It is an error where
// that run has not ended.
func removeStale(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; name a file that is not there yet", err)
	}
	free, err := filelock.TryShared(f)
	if filelock.Unsupported(err) {
		free, err = true, nil // where there are no locks, nobody has one
	}
	pid := publisher(f)
	err = errors.Join(err, f.Close())
	switch {
	case err != nil:
		return err
	case !free && pid != "":
		return fmt.Errorf("%w: process %s wrote it; name another file, or stop that process first (kill %s)", errPublished, pid, pid)
	case !free:
		return fmt.Errorf("%w, which another setpoint up has started; name another file, or stop that one first", errPublished)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig of an earlier run: %w", err)
	}
	return nil
}

// publication is a kubeconfig that this process has written where the user wants it. The
// open file holds the lock.
type publication struct {
	path string
	file *os.File
}

// publish copies a kubeconfig to a path in one step, readable by its owner alone. It
// replaces nothing: another process may have written there since claim looked.
func publish(from, path string) (*publication, error) {
	data, err := os.ReadFile(from)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-") // 0600
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	_, err = fmt.Fprintf(temporary, "%s%s%d\n", data, publishedBy, os.Getpid())
	if err == nil {
		if _, err = filelock.Try(temporary); filelock.Unsupported(err) {
			err = nil
		}
	}
	if err == nil {
		err = os.Link(temporary.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = cmp.Or(removeStale(path), err) // which says whose it is
	}
	err = errors.Join(err, os.Remove(temporary.Name()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the kubeconfig %s: %w", path, err), temporary.Close())
	}
	return &publication{path: path, file: temporary}, nil
}

// withdraw removes the kubeconfig. What somebody has merged other clusters into stays, and
// so does a file that somebody has put in its place.
func (p *publication) withdraw() error {
	defer func() { _ = p.file.Close() }() // which gives back the lock
	mine, err := p.file.Stat()
	if err != nil {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	there, err := os.Lstat(p.path)
	if err != nil || !os.SameFile(mine, there) {
		return nil
	}
	if others, err := othersIn(p.path); err != nil || len(others) > 0 {
		return err
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}

// publishedBy begins the last line of a published kubeconfig, which has the process's ID.
const publishedBy = "# written by setpoint up, process "

// publisher returns the ID of the process that wrote a kubeconfig, "" where the file does
// not say it: kubectl config drops the line.
func publisher(f io.Reader) string {
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	_, text, _ := strings.Cut(string(data), publishedBy)
	pid, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(pid, 10)
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
