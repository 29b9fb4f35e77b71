// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The browser begins with the namespace of the flag. After that, the loops are where they always are.
func TestTheBrowserBeginsWithTheNamespace(t *testing.T) {
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	look := func(h http.Handler) (code int, location string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return w.Code, w.Header().Get("Location")
	}
	h := (&command{namespace: "shop"}).startingAt(inside)
	if code, location := look(h); code != http.StatusSeeOther || location != "/changes?namespace=shop" {
		t.Errorf("the first look is answered with %d %q", code, location)
	}
	for _, h := range []http.Handler{h, (&command{}).startingAt(inside)} {
		if code, _ := look(h); code != http.StatusTeapot {
			t.Errorf("the loops are answered with %d", code)
		}
	}
}
