// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving serves pages about a process: health for every client, and metrics, debug
// pages and profiles for the users of a cluster who have the right to see them. A manager uses
// it by manager.Serve. A program without one uses it so:
//
//	server, err := serving.New(listener, serving.Options{Config: config})
//	server.Health("/livez", "whether a restart would help", serving.NewHealth(nil).Handler("livez", checks...))
//	server.Page("/metrics", "for Prometheus", promhttp.Handler())
//	err = server.Run(ctx)
//
// # Who may see what
//
// A client sends a bearer token, which the API server authenticates (TokenReview), or shows a
// client certificate, see [Authentication]. The API server then says whether that user may get
// the path (SubjectAccessReview); a ClusterRole with nonResourceURLs grants it. The server
// remembers its answers for ten seconds. The process needs the rights that [Rights] and, with
// [Authentication.Lookup], [LookupRights] return.
//
// A page about objects may show each user a part of it: [Server.PageInParts] serves it to users with a weaker right, and
// the handler finds out by [ViewerOf] which objects the user may get.
//
// With [Options.Plain] there is no TLS, and every client of this machine may see everything.
// The server then refuses requests from pages of others in a browser.
//
// # What strangers cost
//
// Connections, headers, the time of a request, questions to the API server, remembered answers
// and log lines are all bounded. Questions about unknown tokens have turns of their own, so that
// a flood of them does not keep a scraper out.
package serving
