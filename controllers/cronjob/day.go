// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import "time"

// day is a day of the calendar, in no particular time zone.
type day struct {
	year  int
	month time.Month
	day   int
}

// utc returns the midnight at which the day begins in UTC.
func (d day) utc() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

// add returns the day that is n days later.
func (d day) add(n int) day {
	year, month, of := d.utc().AddDate(0, 0, n).Date()
	return day{year, month, of}
}

func (d day) before(other day) bool { return d.utc().Before(other.utc()) }
