mod late;
mod lies;
mod loss;
mod noise;
mod silence;
