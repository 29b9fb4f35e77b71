// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// openBrowser has the desktop open an address.
func openBrowser(getenv func(string) string, address string) error {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		// Without a desktop, xdg-open starts a browser of text in this terminal.
		if getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("this session has no desktop")
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is not installed", name)
	}
	command := exec.Command(path, args...) //nolint:noctx // the browser that it may become outlives this command
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // what it says of a browser that fails is the desktop's
	return nil
}
