// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/http"
	"strings"
)

// LocalOnly refuses requests that name this machine by a foreign name, and requests of foreign
// pages in a browser. The owner of such a page could have a name of its own lead to 127.0.0.1,
// and read by it what is served there without TLS.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case !IsLocal(r.Host):
			http.Error(w, "this port answers to localhost and to addresses such as 127.0.0.1 alone", http.StatusMisdirectedRequest)
		case r.Header.Get("Origin") != "", site != "" && site != "none" && site != "same-origin":
			http.Error(w, "this port does not answer to pages of others", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// IsLocal reports whether a Host header names this machine to itself.
func IsLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
