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
	"strconv"
	"strings"
	"syscall"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/version"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

const (
	markerFile = "setpoint-controlplane.json"
	lockFile   = "lock"
	logFile    = "controlplane.log"
	pkiName    = "pki"
	etcdName   = "etcd"

	temporaryPrefix = "setpoint-controlplane-"

	// formatVersion counts incompatible changes of the layout that doc.go
	// describes.
	formatVersion = 1

	// etcdVersion is the minor version of etcd's storage format. etcd refuses
	// to read files of a newer one.
	etcdVersion = "3.7"

	// maxMarker bounds what is read of the marker, in bytes; it has some 60.
	maxMarker = 64 << 10

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
	path      string // without links
	dir       *ownfile.Dir
	pki       *ownfile.Dir
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
		if d.dir, err = ownfile.OpenPrivate(d.path); err != nil {
			return nil, untrusted(err)
		}
	} else if err = d.openNamed(path); err != nil {
		return nil, err
	}
	if err := d.open(freeBytes); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// openNamed opens the directory that the user named, which need not exist.
func (d *dataDir) openNamed(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("opening data directory %s: %w", path, err)
	}
	if err := ownfile.Link(path); err != nil {
		return untrusted(err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return diskError(fmt.Errorf("creating data directory: %w; choose a directory that you may write to", err))
	}
	if d.dir, err = ownfile.OpenDir(path); err != nil {
		return untrusted(err)
	}
	d.path = d.dir.Path()
	return nil
}

// untrusted marks an error that says that another user may have had his hands
// in the data directory.
func untrusted(err error) error {
	if errors.Is(err, ownfile.ErrNotOwn) {
		return fmt.Errorf("%w: %w; choose a new directory below one of your own", ErrUntrustedDataDir, err)
	}
	return fmt.Errorf("opening data directory: %w; choose a directory that you may read and write", err)
}

func (d *dataDir) open(freeBytes func(string) (uint64, error)) error {
	unmarked, err := d.needsMarker()
	if err != nil {
		return err
	}
	if err := d.shut(); err != nil {
		return err
	}
	if d.lock, err = lockDir(d.dir); err != nil {
		return err
	}
	free, err := freeBytes(d.path)
	if err != nil {
		return fmt.Errorf("reading the free space of %s: %w", d.path, err)
	}
	if free < minFreeBytes {
		return fmt.Errorf("%w: the file system of %s has %d MB free, etcd's log needs %d MB; free some space or choose another data directory",
			ErrDiskFull, d.path, free>>20, uint64(minFreeBytes)>>20)
	}
	if d.pki, err = d.sub(pkiName); err != nil {
		return err
	}
	etcd, err := d.sub(etcdName)
	if err != nil {
		return err
	}
	if err := etcd.Close(); err != nil { // etcd opens it by its path
		return fmt.Errorf("preparing data directory: %w", err)
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

// sub opens a directory of the directory, and makes it if it is not there.
func (d *dataDir) sub(name string) (*ownfile.Dir, error) {
	sub, err := d.dir.Sub(name)
	if errors.Is(err, ownfile.ErrNotOwn) {
		return nil, untrusted(err)
	}
	if err != nil {
		return nil, diskError(fmt.Errorf("preparing data directory: %w", err))
	}
	if err := sub.Tighten(); err != nil {
		return nil, errors.Join(untrusted(err), sub.Close())
	}
	return sub, nil
}

// shut closes the directory to other users. Earlier content may be readable by them when
// the user made the directory by hand; the keys in it must not be. Where they could
// write, all that is there may be theirs: only a directory that is empty then is
// accepted, and it is checked once no other user can add to it.
func (d *dataDir) shut() error {
	open, err := d.dir.WritableByOthers()
	if err != nil {
		return untrusted(err)
	}
	mode, err := d.dir.Mode()
	if err != nil {
		return untrusted(err)
	}
	refuseContent := func() error {
		found, err := d.dir.Names()
		if err == nil && open && len(found) > 0 {
			err = fmt.Errorf("%s has mode %04o, so that others may have put %q there: %w", d.path, mode, found[0], ownfile.ErrNotOwn)
		}
		if err != nil {
			return untrusted(err)
		}
		return nil
	}
	if err := refuseContent(); err != nil {
		return err // before anything is changed
	}
	if err := d.dir.Tighten(); err != nil {
		return untrusted(err)
	}
	return refuseContent()
}

// needsMarker reports whether this start has to write the marker, because the
// directory is new or is upgraded from the minor version before. It refuses a
// directory of any other version, and one that holds other files.
func (d *dataDir) needsMarker() (bool, error) {
	path := filepath.Join(d.path, markerFile)
	data, err := d.dir.Read(markerFile, maxMarker)
	if errors.Is(err, fs.ErrNotExist) {
		found, err := d.dir.Names()
		if err != nil {
			return false, fmt.Errorf("reading data directory: %w; choose a directory that you may read and write", err)
		}
		for _, name := range found {
			// A start that ended before it wrote the marker leaves these.
			if name != lockFile && name != pkiName && name != etcdName && !strings.HasPrefix(name, "."+markerFile) {
				return false, fmt.Errorf("%w: %s has no %s but other files, such as %q; choose an empty or a new directory",
					ErrNotDataDir, d.path, markerFile, name)
			}
		}
		return true, nil
	}
	if err != nil {
		return false, untrusted(err)
	}
	found, err := parseMarker(data)
	if err != nil {
		return false, fmt.Errorf("%w: %s is damaged: %w; restore it from a backup or choose a new directory", ErrNotDataDir, path, err)
	}
	want := currentMarker()
	if !found.upgradesTo(want) {
		return false, fmt.Errorf("%w: %s was written by Kubernetes %s with etcd %s in format %d, this program is Kubernetes %s with etcd %s and format %d; run the version that wrote it, upgrade one minor version at a time, or choose a new directory",
			ErrDataDirVersion, d.path, printable(found.Kubernetes), printable(found.Etcd), found.Format, want.Kubernetes, want.Etcd, want.Format)
	}
	return found != want, nil
}

// parseMarker reads the content of setpoint-controlplane.json.
func parseMarker(data []byte) (m marker, err error) {
	err = json.Unmarshal(data, &m)
	return m, err
}

// printable is a version as it was written, fit for an error on a terminal.
func printable(version string) string {
	if quoted := strconv.Quote(version); len(version) == 0 || len(version) > 20 || quoted != `"`+version+`"` {
		return fmt.Sprintf("%.40q", version)
	}
	return version
}

func (d *dataDir) etcdDir() string             { return filepath.Join(d.path, etcdName) }
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
	f, err := d.dir.Open(logFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if errors.Is(err, ownfile.ErrNotOwn) {
		return nil, untrusted(err)
	}
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
		errs = append(errs, d.dir.RemoveAll(markerFile, lockFile))
	}
	if d.pki != nil {
		errs = append(errs, d.pki.Close())
	}
	errs = append(errs, d.dir.Close())
	if d.lock != nil {
		errs = append(errs, d.lock.release())
	}
	return errors.Join(errs...)
}

// sweepTemporary removes temporary data directories whose process ended without Stop. It
// does what it can: what it may not remove belongs to another user. Any user may make a
// directory of such a name, with anything in it, so one that is not this user's own and
// closed to others is skipped before it is opened.
func sweepTemporary() {
	markers, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*", markerFile)) // the pattern is well-formed
	for _, m := range markers {
		if dir, err := ownfile.OpenPrivate(filepath.Dir(m)); err == nil {
			sweep(dir)
			_ = dir.Close() // nothing was written through it
		}
	}
}

func sweep(dir *ownfile.Dir) {
	// The marker is written under the lock: a directory that has it and whose lock is
	// free is not in use.
	if _, err := dir.Read(markerFile, maxMarker); err != nil {
		return
	}
	lock, err := lockDir(dir)
	if err != nil {
		return
	}
	_ = dir.RemoveAll(markerFile, lockFile) // the next start tries again
	_ = lock.release()                      // its file is gone
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
