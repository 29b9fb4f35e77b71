// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ownfile_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "lock")); err != nil {
		log.Fatal(err)
	}
	d, err := ownfile.OpenPrivate(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	_, err = d.Open("lock", os.O_RDWR|os.O_TRUNC)
	fmt.Println(errors.Is(err, ownfile.ErrNotOwn))
	// Output: true
}
