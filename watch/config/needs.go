// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"reflect"
	"strings"

	"github.com/setpoint-io/setpoint/watch/sink"
)

// need is a file or an environment variable that a sink reads.
type need struct {
	file, env string
	path      string   // in the configuration
	at        *Finding // where it is named
}

// needs returns what the sinks read, in the order of the file.
func (c *Config) needs() []need { return c.reads }

// findNeeds looks for references to secrets, wherever options have them, and for files of
// certificates.
func (r *rules) findNeeds() []need {
	var all []need
	for i := range r.config.Sinks {
		path := index("sinks", i)
		references(reflect.ValueOf(r.config.Sinks[i].Options), path, func(path string, ref sink.SecretRef) {
			all = append(all, need{file: ref.File, env: ref.Env, path: path, at: r.at(path, "the %s", ref)})
		})
		if w := r.config.Sinks[i].Webhook; w != nil && w.CAFile != "" {
			all = append(all, need{file: w.CAFile, path: join(path, "webhook.caFile"), at: r.at(join(path, "webhook.caFile"), "the file %s", w.CAFile)})
		}
	}
	return all
}

// references calls found for each reference to a secret that names something.
func references(of reflect.Value, path string, found func(path string, ref sink.SecretRef)) {
	if ref, ok := reflect.TypeAssert[sink.SecretRef](of); ok {
		if !ref.IsZero() {
			found(path, ref)
		}
		return
	}
	switch of.Kind() {
	case reflect.Pointer:
		if !of.IsNil() && of.Type().Elem().Kind() == reflect.Struct {
			references(of.Elem(), path, found)
		}
	case reflect.Slice:
		for i := range of.Len() {
			references(of.Index(i), index(path, i), found)
		}
	case reflect.Struct:
		for f := range fieldsOf(of.Type()) {
			references(of.FieldByIndex(f.index), join(path, f.key), found)
		}
	default: // holds no reference
	}
}

// read tries to read what is needed. What was read is not in the error.
func (n need) read(readFile func(string) ([]byte, error), lookupEnv func(string) (string, bool)) error {
	var value string
	switch {
	case n.file != "" && readFile != nil:
		data, err := readFile(n.file)
		var path *fs.PathError
		switch {
		case errors.As(err, &path):
			return fmt.Errorf("cannot be read: %w; make it, or name the right one", path.Err)
		case err != nil:
			return errors.New("cannot be read; make it, or name the right one")
		}
		value = string(data)
	case n.env != "" && lookupEnv != nil:
		var set bool
		if value, set = lookupEnv(n.env); !set {
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

// hostOf returns the part of a URL that says whose it is, and is no secret.
func hostOf(secret sink.Secret) string {
	u, err := url.Parse(secret.Reveal())
	if err != nil {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host
}

// readable warns of secrets that stand in the file, for all to read who can read it.
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
