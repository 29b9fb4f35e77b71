// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/version"
)

const (
	markerFile = "setpoint-controlplane.json"
	lockFile   = "lock"
	logFile    = "controlplane.log"

	temporaryPrefix = "setpoint-controlplane-"

	// formatVersion counts incompatible changes of the layout that doc.go
	// describes.
	formatVersion = 1

	// etcdVersion is the minor version of etcd's storage format. etcd refuses
	// to read files of a newer one.
	etcdVersion = "3.7"

	// minFreeBytes is what a start needs at least: etcd preallocates two
	// write-ahead log segments of 64 MB each (wal.SegmentSizeBytes), and the
	// database file and certificates want some room beside them. etcd ends
	// the whole process when it cannot write its log, hence the check before.
	minFreeBytes = 160 << 20

	// maxSocketPath is the longest path of a unix socket that every supported
	// system accepts: sun_path holds 104 bytes on darwin (108 on Linux), the
	// last of them zero.
	maxSocketPath = 103
)

// marker is the content of setpoint-controlplane.json.
type marker struct {
	Format     int    `json:"format"`
	Kubernetes string `json:"kubernetes"` // minor version, such as "1.37"
	Etcd       string `json:"etcd"`       // minor version, such as "3.7"
}

func currentMarker() marker {
	return marker{Format: formatVersion, Kubernetes: version.DefaultKubeBinaryVersion, Etcd: etcdVersion}
}

// upgradesTo reports whether a program with the versions of to can take over a
// directory that m describes. Kubernetes and etcd both support an upgrade by one
// minor version, and neither supports a downgrade.
func (m marker) upgradesTo(to marker) bool {
	return m.Format == to.Format && sameOrNextMinor(m.Kubernetes, to.Kubernetes) && sameOrNextMinor(m.Etcd, to.Etcd)
}

// sameOrNextMinor reports whether to is the minor version from, such as "1.36", or
// the one that follows it.
func sameOrNextMinor(from, to string) bool {
	f, err := utilversion.ParseGeneric(from)
	if err != nil {
		return false
	}
	t, err := utilversion.ParseGeneric(to)
	return err == nil && f.Major() == t.Major() && (f.Minor() == t.Minor() || f.Minor()+1 == t.Minor())
}

// dataDir is an opened, locked data directory.
type dataDir struct {
	path      string
	temporary bool // remove everything on close
	lock      *dirLock
	socketDir string // made for a socket whose path would be too long in path; else empty
	log       *os.File
}

// openDataDir creates or opens the directory, and locks it until close. An
// empty path makes a temporary one.
func openDataDir(path string, freeBytes func(string) (uint64, error)) (*dataDir, error) {
	d := &dataDir{temporary: path == ""}
	var err error
	if d.temporary {
		sweepTemporary()
		if d.path, err = os.MkdirTemp("", temporaryPrefix); err != nil {
			return nil, diskError(fmt.Errorf("creating a temporary data directory: %w; is TMPDIR set to a writable directory?", err))
		}
	} else {
		if d.path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("opening data directory %s: %w", path, err)
		}
		if err := os.MkdirAll(d.path, 0o700); err != nil {
			return nil, diskError(fmt.Errorf("creating data directory: %w; choose a directory that you may write to", err))
		}
	}
	if err := d.open(freeBytes); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *dataDir) open(freeBytes func(string) (uint64, error)) error {
	unmarked, err := d.needsMarker()
	if err != nil {
		return err
	}
	if d.lock, err = lockDir(filepath.Join(d.path, lockFile)); err != nil {
		return err
	}
	free, err := freeBytes(d.path)
	if err != nil {
		return fmt.Errorf("asking for the free space of %s: %w", d.path, err)
	}
	if free < minFreeBytes {
		return fmt.Errorf("%w: the file system of %s has %d MB free, etcd's log needs %d MB; free some space or choose another data directory",
			ErrDiskFull, d.path, free>>20, uint64(minFreeBytes)>>20)
	}
	// Earlier content may be readable by others when the user made the
	// directory by hand; the keys in it must not be.
	if err := os.Chmod(d.path, 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("closing the data directory to other users: %w; choose a directory that you own", err)
	}
	for _, sub := range []string{d.pkiDir(), d.etcdDir()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return diskError(fmt.Errorf("preparing data directory: %w", err))
		}
	}
	// Before etcd opens its files: afterwards an older etcd could not read them.
	if unmarked {
		data, err := json.Marshal(currentMarker())
		if err != nil {
			return fmt.Errorf("encoding %s: %w", markerFile, err)
		}
		return writeFile(filepath.Join(d.path, markerFile), append(data, '\n'))
	}
	return nil
}

// needsMarker reports whether this start has to write the marker, because the
// directory is new or is upgraded from the minor version before. It refuses a
// directory of any other version, and one that holds other files.
func (d *dataDir) needsMarker() (bool, error) {
	path := filepath.Join(d.path, markerFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(d.path)
		if err != nil {
			return false, fmt.Errorf("reading data directory: %w; choose a directory that you may read and write", err)
		}
		for _, e := range entries {
			// A start that ended before it wrote the marker leaves these.
			if e.Name() != lockFile && e.Name() != "pki" && e.Name() != "etcd" && !strings.HasPrefix(e.Name(), "."+markerFile) {
				return false, fmt.Errorf("%w: %s has no %s but other files, such as %q; choose an empty or a new directory",
					ErrNotDataDir, d.path, markerFile, e.Name())
			}
		}
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading data directory: %w; choose a directory that you may read and write", err)
	}
	var found marker
	if err := json.Unmarshal(data, &found); err != nil {
		return false, fmt.Errorf("%w: %s is damaged: %w; restore it from a backup or choose a new directory", ErrNotDataDir, path, err)
	}
	want := currentMarker()
	if !found.upgradesTo(want) {
		return false, fmt.Errorf("%w: %s was written by Kubernetes %s with etcd %s in format %d, this program is Kubernetes %s with etcd %s and format %d; run the version that wrote it, upgrade one minor version at a time, or choose a new directory",
			ErrDataDirVersion, d.path, found.Kubernetes, found.Etcd, found.Format, want.Kubernetes, want.Etcd, want.Format)
	}
	return found != want, nil
}

func (d *dataDir) pkiDir() string              { return filepath.Join(d.path, "pki") }
func (d *dataDir) etcdDir() string             { return filepath.Join(d.path, "etcd") }
func (d *dataDir) kubeconfig() string          { return filepath.Join(d.path, "kubeconfig") }
func (d *dataDir) schedulerKubeconfig() string { return filepath.Join(d.path, "scheduler.kubeconfig") }

// etcdSocket returns the path of etcd's unix socket: in the data directory if
// the path fits, else in a private temporary directory.
func (d *dataDir) etcdSocket() (string, error) {
	const name = "etcd.sock"
	if path := filepath.Join(d.path, name); len(path) <= maxSocketPath {
		return path, nil
	}
	parent := os.TempDir()
	if len(filepath.Join(parent, "setpoint-0123456789", name)) > maxSocketPath {
		parent = "/tmp"
	}
	var err error
	if d.socketDir, err = os.MkdirTemp(parent, "setpoint-"); err != nil { // mode 0700
		return "", diskError(fmt.Errorf("creating a directory for etcd's socket: %w", err))
	}
	return filepath.Join(d.socketDir, name), nil
}

// openLog returns a logger that writes errors to a file of the directory, which
// begins empty at each start.
func (d *dataDir) openLog() (*slog.Logger, error) {
	f, err := os.OpenFile(filepath.Join(d.path, logFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, diskError(fmt.Errorf("opening the log file: %w", err))
	}
	d.log = f
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelError})), nil
}

func (d *dataDir) close() error {
	var errs []error
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	if d.socketDir != "" {
		errs = append(errs, os.RemoveAll(d.socketDir))
	}
	if d.temporary {
		errs = append(errs, os.RemoveAll(d.path))
	}
	if d.lock != nil {
		errs = append(errs, d.lock.release())
	}
	return errors.Join(errs...)
}

// sweepTemporary removes temporary data directories whose process ended without
// Stop. It does what it can: what it may not remove is somebody else's.
func sweepTemporary() {
	markers, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*", markerFile)) // the pattern is well-formed
	for _, m := range markers {
		dir := filepath.Dir(m)
		// The marker is written under the lock: a directory that has it and
		// whose lock is free is nobody's.
		lock, err := lockDir(filepath.Join(dir, lockFile))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir) // the next start tries again
		_ = lock.release()    // its file is gone
	}
}

// statfsFree returns how many bytes this user can still write at path.
func statfsFree(path string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	// Bsize is int64 on Linux and uint32 on darwin.
	return s.Bavail * uint64(s.Bsize), nil
}
