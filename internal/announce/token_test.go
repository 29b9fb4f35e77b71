// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package announce_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/announce"
)

// The token of a kubeconfig goes to an address that the user has named, if an authority of the kubeconfig vouches for its certificate. It goes
// nowhere else.
func TestWhoGetsTheToken(t *testing.T) {
	var got []string
	note := func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }
	elsewhere := httptest.NewServer(http.HandlerFunc(note))
	defer elsewhere.Close()
	redirects := false
	pages := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if note(w, r); redirects {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		}
	}))
	defer pages.Close()
	authority := rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pages.Certificate().Raw})}
	plain := httptest.NewServer(http.HandlerFunc(note))
	defer plain.Close()
	for name, c := range map[string]struct {
		manager   announce.Manager
		tls       rest.TLSClientConfig
		redirects bool
		want      string // the credentials of each request
	}{
		"an address of the user":              {announce.Manager{URL: pages.URL}, authority, false, "Bearer secret"},
		"an address without encryption":       {announce.Manager{URL: plain.URL}, authority, false, ""},
		"another authority":                   {announce.Manager{URL: pages.URL}, rest.TLSClientConfig{}, false, "no request"},
		"a kubeconfig that trusts everything": {announce.Manager{URL: pages.URL}, rest.TLSClientConfig{Insecure: true}, false, ""},
		"a manager that redirects":            {announce.Manager{URL: pages.URL}, authority, true, "Bearer secret"},
	} {
		t.Run(name, func(t *testing.T) {
			got, redirects = nil, c.redirects
			get, err := c.manager.Pages(&rest.Config{BearerToken: "secret", TLSClientConfig: c.tls})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = get(t.Context(), "/debug/runs")
			sent := strings.Join(got, ", ")
			if len(got) == 0 {
				sent = "no request"
			}
			if sent != c.want || (err != nil) != (c.want == "no request") {
				t.Errorf("the requests had the credentials %q (%v), want %q", sent, err, c.want)
			}
		})
	}
}
