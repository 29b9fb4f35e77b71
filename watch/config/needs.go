// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/setpoint-io/setpoint/watch/sink"
)

// need is a file or an environment variable that a sink reads.
type need struct {
	sink.SecretRef

	path string   // in the configuration
	at   *Finding // where it is named
}

// findNeeds returns what the sinks read, in the order of the file.
func (r *rules) findNeeds() (all []need) {
	for i := range r.config.Sinks {
		for _, read := range r.config.Sinks[i].Reads() {
			path := join(index("sinks", i), read.Field)
			all = append(all, need{read.SecretRef, path, r.at(path, "the %s", read.SecretRef)})
		}
	}
	return all
}

// read tries to read a file or a variable. Its content is not in the error.
func (n need) read(readFile func(string) ([]byte, error), lookupEnv func(string) (string, bool)) error {
	var value string
	switch {
	case n.File != "" && readFile != nil:
		data, err := readFile(n.File)
		var path *fs.PathError
		switch {
		case errors.As(err, &path):
			return fmt.Errorf("cannot be read: %w; make it, or name the right one", path.Err)
		case err != nil:
			return errors.New("cannot be read; make it, or name the right one")
		}
		value = string(data)
	case n.Env != "" && lookupEnv != nil:
		var set bool
		if value, set = lookupEnv(n.Env); !set {
			return errors.New("is not set here")
		}
	default:
		return nil
	}
	if strings.TrimSpace(value) == "" {
		return errors.New("is empty")
	}
	return nil
}

// hostOf returns the scheme and the host of a URL, which are no secret.
func hostOf(secret sink.Secret) string {
	u, err := url.Parse(secret.Reveal())
	if err != nil {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host
}

// readable warns of secrets in the file itself, which every reader of the file can see.
func (r *rules) readable() {
	for i := range r.config.Sinks {
		w, path := r.config.Sinks[i].Webhook, join(index("sinks", i), "webhook")
		if w == nil {
			continue
		}
		if u, err := url.Parse(w.URL.Reveal()); err == nil && u.User != nil {
			r.warn(join(path, "url"), "has a name and password in it, for all who can read this file; put the URL into a file of its own, and name that under urlFrom")
		}
		for j, h := range w.Headers {
			name := strings.ToLower(h.Name)
			for _, word := range []string{"auth", "token", "key", "secret", "cookie"} {
				if !h.Value.IsZero() && strings.Contains(name, word) {
					r.warn(join(index(join(path, "headers"), j), "value"), "looks like a secret, and can be read by all who can read this file; put it into a file of its own, and name that under from")
					break
				}
			}
		}
	}
}
