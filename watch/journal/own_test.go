// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/internal/ownfile"
	"github.com/setpoint-io/setpoint/watch/journal"
)

func TestALooseJournalIsTightened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for range 2 {
		j, _, err := journal.Open(path, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the mode is %v, %v", info.Mode(), err)
		}
		if err := errors.Join(j.Close(), os.Chmod(path, 0o664)); err != nil { //nolint:gosec // as an older version left it
			t.Fatal(err)
		}
	}
}

func TestAJournalOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := t.TempDir()
	path, link := filepath.Join(dir, "journal"), filepath.Join(dir, "link")
	j, _, err := journal.Open(path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Close(), os.Symlink(path, link), os.Lchown(link, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.Open(link, journal.Options{}); !errors.Is(err, ownfile.ErrNotOwn) {
		t.Errorf("through a link of another user, the error is %v", err)
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.Open(path, journal.Options{}); !errors.Is(err, ownfile.ErrNotOwn) {
		t.Errorf("of a file of another user, the error is %v", err)
	}
}
