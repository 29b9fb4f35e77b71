// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// checkOpen returns an error for an empty path, or one with a star that is not its end.
// Source: k8s.io/apiserver/pkg/authorization/path, NewAuthorizer.
func checkOpen(paths []string) error {
	for _, path := range paths {
		if path == "" {
			return errors.New("an open path is empty; want a path such as /healthz")
		}
		if star := strings.IndexByte(path, '*'); star >= 0 && star < len(path)-1 {
			return fmt.Errorf("the open path %s: want a star at its end alone", path)
		}
	}
	return nil
}

// open reports whether a path needs no rights.
func open(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(strings.TrimPrefix(path, "/"), strings.TrimPrefix(prefix, "/"))
		}
		return strings.TrimPrefix(p, "/") == strings.TrimPrefix(path, "/")
	})
}

// guards returns what decides who may see pages of health, and all other pages.
func (s *Server) guards() (health func(http.Handler) http.Handler, rest func(http.Handler, need) http.Handler) {
	unguarded := func(h http.Handler) http.Handler { return h }
	switch {
	case s.options.Plain:
		return unguarded, func(h http.Handler, _ need) http.Handler { return toAll(h) }
	case s.options.OpenPaths == nil:
		return unguarded, s.access.guard
	}
	but := func(h http.Handler, of need) http.Handler {
		guarded, unguarded := s.access.guard(h, of), toAll(h)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if open(s.options.OpenPaths, r.URL.Path) {
				unguarded.ServeHTTP(w, r)
				return
			}
			guarded.ServeHTTP(w, r)
		})
	}
	return func(h http.Handler) http.Handler { return but(h, need{}) }, but
}
