// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Paint measures pages in a headless Chromium.
//
//	paint ADDRESS...
//	paint -hold ADDRESS...
//
// It visits each address once, in a tab that has loaded nothing before. For each it prints a line with two figures of the
// browser itself: the milliseconds from the navigation to the end of the server's answer, and to the first contentful paint.
//
// With -hold it opens all addresses at the same time, prints "open" when all of them have their live updates, and keeps them
// open until its standard input ends. Then it prints for each how often the view changed.
package main
