// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// readConfig reads the file of -f. The error says file and line of each mistake.
func readConfig(path string) (*config.Config, error) {
	data, err := readBounded(path, config.MaxSize+1) // one more, so that Parse sees that it is too much
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	return config.Parse(data, path)
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	return data, errors.Join(err, f.Close())
}

// mostSecret is the largest file that is read as a secret, in bytes.
const mostSecret = 1 << 20

// secrets returns the function that reads the secrets of sinks. No error has their content.
func secrets(w *cli.World) func(sink.SecretRef) (string, error) {
	lookup := lookupEnv(w)
	return func(ref sink.SecretRef) (string, error) {
		if ref.File == "" {
			value, set := lookup(ref.Env)
			if !set {
				return "", errors.New("it is not set, or empty")
			}
			return value, nil
		}
		data, err := readSecret(ref.File)
		return string(data), err
	}
}

func readSecret(file string) ([]byte, error) {
	data, err := readBounded(file, mostSecret+1)
	if err == nil && len(data) > mostSecret {
		return nil, fmt.Errorf("it is larger than %d bytes; is this the file that you mean?", mostSecret)
	}
	return data, err
}

// lookupEnv is as os.LookupEnv, but an empty variable is not set: no secret is empty.
func lookupEnv(w *cli.World) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		value := w.Getenv(name)
		return value, value != ""
	}
}
