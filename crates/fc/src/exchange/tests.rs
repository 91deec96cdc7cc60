mod data;
mod garbage;
mod ids;
