// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// apiServer is the program whose version the command reads.
const apiServer = "kube-apiserver"

// programs are what envtest looks for in KUBEBUILDER_ASSETS.
// Source: sigs.k8s.io/controller-runtime/pkg/internal/testing/controlplane, Plane.
var programs = []string{apiServer, "etcd", "kubectl"}

// directoryFor returns the directory below cache for the links to a binary. Each path of a
// binary has a directory of its own. A binary that is replaced by a newer one keeps it: shells
// and editors may have the path of the directory in their environment for weeks.
func directoryFor(cache, binary string) string {
	digest := sha256.Sum256([]byte(binary))
	return filepath.Join(cache, "setpoint", "assets", hex.EncodeToString(digest[:8]))
}

// link makes the directory with a link for each program. binary is absolute. Links that are right
// stay as they are, and each other one is replaced in one step: several processes may call
// link at the same time, while tests start programs from the directory.
func link(dir, binary string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range programs {
		path := filepath.Join(dir, name)
		if to, err := os.Readlink(path); err == nil && to == binary {
			continue
		}
		if err := replace(path, binary); err != nil {
			return err
		}
	}
	return nil
}

// attempts bounds the search for a name that is free; other processes take two or three at most.
const attempts = 1000

// replace makes path a link to binary. It makes the link under another name and renames it.
func replace(path, binary string) error {
	for i := range attempts {
		draft := fmt.Sprintf("%s.%d-%d", path, os.Getpid(), i)
		err := os.Symlink(binary, draft)
		if errors.Is(err, fs.ErrExist) {
			continue // a process with the same id was killed here, perhaps in another container
		}
		if err != nil {
			return err
		}
		if err := os.Rename(draft, path); err != nil {
			return errors.Join(err, os.Remove(draft))
		}
		return nil
	}
	return fmt.Errorf("%s: %d files beside it have the names for a new link: remove the directory", path, attempts)
}
