// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// writeFile replaces a file in one step: a reader sees the old content or the
// new, never a part. Everything this package writes is for its owner alone.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return diskError(fmt.Errorf("writing %s: %w", path, err))
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return diskError(fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(f.Name()))))
	}
	return nil
}

// diskError marks an error that a full disk caused, so that callers need not
// know the errno of their system.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w; free some space or choose another data directory", ErrDiskFull, err)
	}
	return err
}
