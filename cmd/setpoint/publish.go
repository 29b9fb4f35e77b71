// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// The file that --kubeconfig of "setpoint up" names exists for as long as the
// cluster can be used, and whoever waits for it may rely on that. One that an
// earlier run left behind is therefore removed at the start. But it may just as
// well be the file with all the clusters that somebody has: that one is nobody's
// to replace.

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
	if err := withdraw(file); err != nil {
		return fmt.Errorf("--kubeconfig %s: %w", file, err)
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-")
	if err != nil {
		return fmt.Errorf("--kubeconfig %s: %w; name a file in a directory that is there and that you may write to", file, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// publish copies a kubeconfig to file in one step, readable by its owner alone.
func publish(from, file string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-") // 0600
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the kubeconfig: %w", err), os.Remove(temporary.Name()))
	}
	return nil
}

// withdraw removes a kubeconfig of ours. What somebody has merged other clusters
// into stays.
func withdraw(file string) error {
	if others, err := othersIn(file); err != nil || len(others) > 0 {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
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
